import { fileURLToPath } from "node:url";
import { readCommandLine } from "../commandLine.ts";

/** Above so many resources there are plans only: the time of an apply of `terraform_data` grows with their square. */
export const MOST_APPLIED = 1000;

const WHOLE_NUMBER = /^[1-9]\d{0,5}$/;

const USAGE = `Usage: npm run bench:terraform [-- options]
  --sizes N,N,…  numbers of resources, default 100,500,2000; above ${MOST_APPLIED} there are plans only
  --write        writes the tables, as Markdown, to bench/TERRAFORM.md too`;

const OPTIONS = {
  sizes: { type: "string", default: "100,500,2000" },
  write: { type: "boolean", default: false },
} as const;

/** What the command line says. */
export interface Arguments {
  /** Numbers of resources, the smallest first. */
  readonly sizes: readonly number[];
  /** File that takes the tables too. */
  readonly output: string | undefined;
}

/** The arguments of the command line; the process ends where something is wrong with them. */
export const readArguments = (): Arguments =>
  readCommandLine(OPTIONS, USAGE, ({ sizes: text, write }) => {
    const given = text.split(",");
    if (!given.every((size) => WHOLE_NUMBER.test(size))) return "--sizes must be whole numbers from 1 on";
    const sizes = [...new Set(given.map(Number))].sort((a, b) => a - b);
    // States of sizes that are not applied are made from one that was.
    if ((sizes[0] ?? 0) > MOST_APPLIED) return `--sizes must have one of at most ${MOST_APPLIED}`;
    return {
      sizes,
      output: write ? fileURLToPath(new URL("../TERRAFORM.md", import.meta.url)) : undefined,
    };
  });
