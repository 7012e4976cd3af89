import { readCommandLine } from "../commandLine.ts";
import type { Case } from "./case.ts";
import { CASES } from "./cases.ts";
import { benchDatabases, type DatabaseName } from "./database.ts";

const DATABASES = Object.keys(benchDatabases) as DatabaseName[];
const CHOICES = [...DATABASES, "both"];
const WHOLE_NUMBER = /^[1-9]\d{0,5}$/;

export interface Arguments {
  readonly databases: readonly DatabaseName[];
  /** Where a PostgreSQL database is that runs by itself; it must be empty. */
  readonly databaseUrl: string | undefined;
  readonly cases: readonly Case[];
  /** Length of each measured run. */
  readonly seconds: number;
  /** Runs of each case, in turn with those of the floor. */
  readonly rounds: number;
  /** File that takes the table too. */
  readonly output: string | undefined;
}

const USAGE = `Usage: npm run bench:server [-- options]
  --database NAME     ${CHOICES.join(", ")}; default: both
  --database-url URL  an empty PostgreSQL database, instead of one that is started for the run
  --cases A,B,…       ${Object.keys(CASES).join(", ")}; default: all
  --seconds N         length of each measured run, default 5
  --rounds N          runs of each case, default 3; the table has the medians
  --output FILE       writes the table, as Markdown, to the file too`;

const OPTIONS = {
  database: { type: "string", default: "both" },
  "database-url": { type: "string" },
  cases: { type: "string" },
  seconds: { type: "string", default: "5" },
  rounds: { type: "string", default: "3" },
  output: { type: "string" },
} as const;

/** The arguments of the command line; the process ends where something is wrong with them. */
export const readArguments = (): Arguments =>
  readCommandLine(OPTIONS, USAGE, (values) => {
    const databases = DATABASES.filter((name) => values.database === "both" || name === values.database);
    if (databases.length === 0) return `--database must be one of ${CHOICES.join(", ")}`;
    const names = values.cases?.split(",") ?? Object.keys(CASES);
    const cases = names.flatMap((name) => CASES[name] ?? []);
    if (cases.length < names.length) return `--cases must be of ${Object.keys(CASES).join(", ")}`;
    const { seconds, rounds, output } = values;
    if (!WHOLE_NUMBER.test(seconds)) return "--seconds must be a whole number from 1";
    if (!WHOLE_NUMBER.test(rounds)) return "--rounds must be a whole number from 1";
    return {
      databases,
      databaseUrl: values["database-url"],
      cases,
      seconds: Number(seconds),
      rounds: Number(rounds),
      output,
    };
  });
