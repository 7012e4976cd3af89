import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { OperatorError, reasonOf } from "../OperatorError.ts";

/** Permission bits of the group and of others; Windows does not have them. */
const othersMayWrite = 0o022;
export const othersMayDoAnything = 0o077;
/** Permission bits of others alone, without the group. */
export const strangersMayDoAnything = 0o007;

/** True when somebody other than the file's user has one of the permissions. */
export function openToOthers(path: string, permissions: number): boolean {
  return process.platform !== "win32" && (statSync(path).mode & permissions) !== 0;
}

/**
 * Creates the data folder, for its user alone, if it is missing.
 * @throws OperatorError when the folder cannot be made, is not a folder, or others may write into it: they could put a
 * signing key of their own there
 */
export function prepareDataFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = reasonOf(error);
    throw new OperatorError(`Cannot make the data folder ${folder}: ${reason}`, { cause: error });
  }
  if (openToOthers(folder, othersMayWrite)) {
    throw new OperatorError(`Others may write into the data folder ${folder}: run \`chmod 700 ${folder}\``);
  }
}

/** Name of the file with the instance secret. */
export const SECRET_FILE = "secret";

/**
 * Refuses an empty database file, which a broken disk or a failed copy may leave. The service would start on it without
 * its users, and SQLite would discard the content of the write-ahead log.
 * @throws OperatorError the file is empty, but the data folder's secret or a write-ahead log shows that there was data
 */
export function refuseEmptiedDatabase(folder: string, database: string): void {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size;
  if (size(database) !== 0) return;
  if (!existsSync(join(folder, SECRET_FILE)) && !size(`${database}-wal`)) return;
  throw new OperatorError(
    `The database ${database} is empty (0 bytes), but a service has run here: put a backup in its place with ` +
      `\`gatehouse-server restore <file> --data-dir ${folder}\`. If there never was any data, remove the empty file`,
  );
}
