import { parseArgs } from "node:util";
import { CASES, type Case } from "./cases.ts";
import { benchDatabases, type DatabaseName } from "./database.ts";

const DATABASES = Object.keys(benchDatabases) as DatabaseName[];
const CHOICES = [...DATABASES, "both"];

export interface Arguments {
  readonly databases: readonly DatabaseName[];
  /** Where a database is that runs by itself; it must be empty. */
  readonly databaseUrl: string | undefined;
  readonly cases: readonly Case[];
  /** Length of each measured run. */
  readonly seconds: number;
  /** File that takes the table too. */
  readonly output: string | undefined;
}

export const usage = `Usage: npm run bench:server [-- options]
  --database NAME     ${CHOICES.join(", ")}; default: sqlite
  --database-url URL  an empty database, for one that runs by itself
  --cases A,B,…       ${Object.keys(CASES).join(", ")}; default: all
  --seconds N         length of each measured run, default 10
  --output FILE       writes the table, as Markdown, to the file too`;

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    options: {
      database: { type: "string", default: "sqlite" },
      "database-url": { type: "string" },
      cases: { type: "string" },
      seconds: { type: "string", default: "10" },
      output: { type: "string" },
    },
  }).values;

/** The arguments of the command line, or what is wrong with them. */
export function readArguments(args: readonly string[]): Arguments | string {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const databases = DATABASES.filter((name) => values.database === "both" || name === values.database);
  if (databases.length === 0) return `--database must be one of ${CHOICES.join(", ")}`;
  const names = values.cases?.split(",") ?? Object.keys(CASES);
  const cases = names.flatMap((name) => CASES[name] ?? []);
  if (cases.length < names.length) return `--cases must be of ${Object.keys(CASES).join(", ")}`;
  const seconds = Number(values.seconds);
  if (!(seconds > 0)) return "--seconds must be a positive number";
  return { databases, databaseUrl: values["database-url"], cases, seconds, output: values.output };
}
