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

/** Interval between two progress lines, in milliseconds. */
const PROGRESS_INTERVAL = 2000;

const target: Setting<z.ZodString> = {
  variable: "GATEHOUSE_TARGET_DATABASE_URL",
  value: "url",
  about: "Empty PostgreSQL database for the copy",
  allowed: "postgresql://[user[:password]@]host[:port]/name",
  secret: true,
  schema: z.string().refine(isPostgresql),
};

/**
 * The error of a copy that lacks rows, because the service wrote these rows during the copy. The command exits with
 * code 3.
 */
class IncompleteCopyError extends OperatorError {
  override readonly name = "IncompleteCopyError";
  override readonly exitCode = 3;
}

async function migrate(io: CommandIo, flags: Flags): Promise<void> {
  const values = readSettings(["dataDir", "databaseUrl", "databaseConnections"], io.env, flags);
  const { dataDir } = values;
  const database = databaseAt(values.databaseUrl, dataDir, values.databaseConnections);
  if (!("file" in database)) throw new OperatorError("The service already uses PostgreSQL.");
  const url = readVariable(target, io.env);
  // This module is loaded on demand, so that other commands start faster.
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
    "Copied all rows. Encrypted values are unchanged, so every instance needs the same secret: the file `secret` of the " +
      "data folder, or the value of GATEHOUSE_SECRET or GATEHOUSE_SECRET_FILE.",
  );
  if (missed === undefined)
    return print(io, "Set GATEHOUSE_DATABASE_URL to the new database and start the service.");
  print(
    io,
    "The service still writes to its old database. To move the service, stop it and run this command again with an empty database.",
  );
  if (missed > 0) {
    throw new IncompleteCopyError(`The copy lacks ${missed} rows that the service wrote during the copy.`);
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

const NOTES = `
Set ${target.variable} to the URL of the PostgreSQL database, or
${target.variable}_FILE to a file with the URL:
${target.allowed}

Stop the service first. While the service runs, the command copies a snapshot as a
rehearsal. The copy lacks later changes.

Exit codes: 0 = copied all rows; 1 = copied nothing; 2 = wrong usage; 3 = the
service wrote rows during the copy`;

/**
 * Creates the command `gatehouse-server migrate-to-postgresql`, which copies the data of a service from SQLite to
 * PostgreSQL.
 */
export function migrateCommand(io: CommandIo): Command {
  const command = subcommand("migrate-to-postgresql", "Copy all data to an empty PostgreSQL database.", "", {
    notes: NOTES,
  }).action((flags: Flags) => migrate(io, flags));
  addOption(command, settings.databaseUrl);
  return command;
}
