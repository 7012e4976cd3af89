import { parseArgs } from "node:util";
import { CASES, type Case } from "./cases.ts";
import { DATABASES, type DatabaseName } from "./database.ts";

export interface Arguments {
  readonly databases: readonly DatabaseName[];
  readonly cases: readonly Case[];
  /** Length of each measured run. */
  readonly seconds: number;
  /** File that takes the table too. */
  readonly output: string | undefined;
}

export const usage = `Usage: npm run bench:server [-- options]
  --database NAME   ${DATABASES.join(", ")}; default: ${DATABASES[0]}
  --cases A,B,…     ${Object.keys(CASES).join(", ")}; default: all
  --seconds N       length of each measured run, default 10
  --output FILE     writes the table, as Markdown, to the file too`;

/** The arguments of the command line, or what is wrong with them. */
export function readArguments(args: readonly string[]): Arguments | string {
  const { values } = parseArgs({
    args: [...args],
    options: {
      database: { type: "string", default: DATABASES[0] },
      cases: { type: "string" },
      seconds: { type: "string", default: "10" },
      output: { type: "string" },
    },
  });
  const databases = DATABASES.filter((name) => name === values.database);
  if (databases.length === 0) return `--database must be one of ${DATABASES.join(", ")}`;
  const names = values.cases?.split(",") ?? Object.keys(CASES);
  const cases = names.flatMap((name) => CASES[name] ?? []);
  if (cases.length < names.length) return `--cases must be of ${Object.keys(CASES).join(", ")}`;
  const seconds = Number(values.seconds);
  if (!(seconds > 0)) return "--seconds must be a positive number";
  return { databases, cases, seconds, output: values.output };
}
