import type { Command } from "commander";
import { z } from "zod";
import { OperatorError } from "../OperatorError.ts";
import { databaseAt, type Flags, readSettings, readVariable } from "../settings/readConfig.ts";
import type { Setting } from "../settings/setting.ts";
import { settings } from "../settings/settings.ts";
import { isPostgresql } from "../settings/values.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { addOption } from "./serveCommand.ts";
import { subcommand } from "./subcommand.ts";
import { formatTable } from "./table.ts";

/** Milliseconds between two progress lines. */
const PROGRESS_INTERVAL = 2000;

const target: Setting<z.ZodString> = {
  variable: "GATEHOUSE_TARGET_DATABASE_URL",
  value: "url",
  about: "Empty PostgreSQL database to copy into",
  allowed: "postgresql://[user[:password]@]host[:port]/name",
  secret: true,
  schema: z.string().refine(isPostgresql),
};

/** The copy is complete but for the rows that the service wrote meanwhile. */
class IncompleteCopyError extends OperatorError {
  override readonly name = "IncompleteCopyError";
  override readonly exitCode = 3;
}

async function migrate(io: CommandIo, flags: Flags): Promise<void> {
  const values = readSettings(["dataDir", "databaseUrl", "databaseConnections"], io.env, flags);
  const { dataDir } = values;
  const database = databaseAt(values.databaseUrl, dataDir, values.databaseConnections);
  if (!("file" in database)) throw new OperatorError("The service keeps its data in PostgreSQL already");
  const url = readVariable(target, io.env);
  // Loaded on demand, like the service.
  const { migrateToPostgresql } = await import("./migrateToPostgresql.ts");
  const { tables, missed } = await migrateToPostgresql({
    dataDir,
    database: database.file,
    target: url,
    progress: progressLines(io),
  });
  const rows = tables.map(({ name, rows }) => [name, String(rows)]);
  print(io, formatTable([["TABLE", "ROWS"], ...rows]));
  print(
    io,
    "All rows are there. Sealed values were copied as they are: give every instance the same secret as now, the file " +
      "`secret` of the data folder or what GATEHOUSE_SECRET or GATEHOUSE_SECRET_FILE names",
  );
  if (missed === undefined)
    return print(io, "Start the service with GATEHOUSE_DATABASE_URL set to the new database");
  print(
    io,
    "The service still writes to its old database: to move, stop it and run this again with an empty database",
  );
  if (missed > 0) {
    throw new IncompleteCopyError(`The service wrote ${missed} rows meanwhile, which are not in the copy`);
  }
}

function progressLines(io: CommandIo): (table: string, done: number, total: number) => void {
  let last = Date.now();
  return (table, done, total) => {
    if (Date.now() - last < PROGRESS_INTERVAL) return;
    last = Date.now();
    io.stderr.write(`${table}: ${done} of ${total} rows\n`);
  };
}

/** `gatehouse-server migrate-to-postgresql`: copies the data of a service from SQLite to PostgreSQL. */
export function migrateCommand(io: CommandIo): Command {
  const command = subcommand("migrate-to-postgresql", "Copy all data into an empty PostgreSQL database")
    .addHelpText(
      "after",
      `
The URL of the PostgreSQL database is in ${target.variable}, or in the file that ${target.variable}_FILE names:
${target.allowed}

Stop the service first. While it runs, a snapshot is copied, as a rehearsal: what it writes later is not in the copy.

Exit codes: 0 all is copied, 1 nothing is, 2 wrong command line, 3 the service wrote meanwhile.`,
    )
    .action((flags: Flags) => migrate(io, flags));
  addOption(command, settings.databaseUrl);
  return command;
}
