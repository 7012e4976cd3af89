import { readCommandLine } from "../commandLine.ts";
import { GROWTH } from "./sizes.ts";

const PARTS = ["fleet", ...Object.keys(GROWTH)];
const WHOLE_NUMBER = /^[1-9]\d{0,3}$/;

export interface Arguments {
  /** `fleet`, or the name of a figure that grows. */
  readonly parts: readonly string[];
  /** Runs of each operation in one process. */
  readonly rounds: number;
  /** File that takes the tables too. */
  readonly output: string | undefined;
}

const USAGE = `Usage: npm run bench:policy [-- options]
  --parts A,B,…  ${PARTS.join(", ")}; default: all
  --rounds N     runs of each operation, default 5; the tables have the medians
  --output FILE  writes the tables, as Markdown, to the file too`;

const OPTIONS = {
  parts: { type: "string" },
  rounds: { type: "string", default: "5" },
  output: { type: "string" },
} as const;

/** The arguments of the command line; the process ends where something is wrong with them. */
export const readArguments = (): Arguments =>
  readCommandLine(OPTIONS, USAGE, ({ parts: names, rounds, output }) => {
    const parts = names?.split(",") ?? PARTS;
    if (parts.some((part) => !PARTS.includes(part))) return `--parts must be of ${PARTS.join(", ")}`;
    if (!WHOLE_NUMBER.test(rounds)) return "--rounds must be a whole number from 1 to 9999";
    return { parts, rounds: Number(rounds), output };
  });
