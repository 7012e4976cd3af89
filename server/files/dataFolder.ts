import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../OperatorError.ts";

/** Permission bits of the group and of others. Windows has none of them. */
export const othersMayWrite = 0o022;
export const othersMayDoAnything = 0o077;
/** Those of others alone. */
export const strangersMayDoAnything = 0o007;

/** True when others than the file's user have one of the permissions. */
export function openToOthers(path: string, permissions: number): boolean {
  return process.platform !== "win32" && (statSync(path).mode & permissions) !== 0;
}

/**
 * Makes the data folder (for its user alone) when there is none.
 * @throws OperatorError when it cannot be made, is not a folder, or others may write into it: they could put
 * a signing key of their own there
 */
export function prepareDataFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new OperatorError(`Cannot make the data folder ${folder}: ${reason}`, { cause: error });
  }
  if (openToOthers(folder, othersMayWrite)) {
    throw new OperatorError(`Others may write into the data folder ${folder}: run \`chmod 700 ${folder}\``);
  }
}

/** Name of the file with the instance secret. */
export const SECRET_FILE = "secret";

/**
 * An empty file where the database was is what a broken disk or a copy that failed leaves. The service would begin anew
 * on it, without its users, and SQLite would throw away what is still in the write-ahead log.
 * @throws OperatorError the file is empty, and the data folder's secret or a write-ahead log says that there was data
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
