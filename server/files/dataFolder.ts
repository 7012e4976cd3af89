import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { OperatorError } from "../OperatorError.ts";

/** Permission bits of the group and of other users. Windows has no such bits. */
const othersMayWrite = 0o022;
export const othersMayDoAnything = 0o077;
/** Permission bits of other users, without the group. */
export const strangersMayDoAnything = 0o007;

/** Returns true if the file's group or other users have one of the given permissions. */
export function openToOthers(path: string, permissions: number): boolean {
  return process.platform !== "win32" && (statSync(path).mode & permissions) !== 0;
}

/**
 * Creates the data folder, accessible to its owner only, if it is missing.
 * @throws OperatorError the folder cannot be created, is not a folder, or other users may write to it, so that they
 * could store their own signing key
 */
export function prepareDataFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    // The recursive creation also creates missing parent folders.
    const text = fileFailureText("write", `the data folder ${folder}`, error);
    throw new OperatorError(text, { cause: error });
  }
  if (openToOthers(folder, othersMayWrite)) {
    throw new OperatorError(
      `Other users may write to the data folder ${folder}. Run \`chmod 700 ${folder}\``,
    );
  }
}

/** Name of the file with the instance secret. */
export const SECRET_FILE = "secret";

/**
 * Rejects an empty database file, which a broken disk or a failed copy may leave. On an empty file, the service would
 * start without any users, and SQLite would discard the content of the write-ahead log.
 * @throws OperatorError the file is empty, but the data folder's secret or a write-ahead log shows that data existed
 */
export function refuseEmptiedDatabase(folder: string, database: string): void {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size;
  if (size(database) !== 0) return;
  if (!existsSync(join(folder, SECRET_FILE)) && !size(`${database}-wal`)) return;
  throw new OperatorError(
    `The database ${database} is empty (0 bytes), but a service has run here. Restore a backup with ` +
      `\`gatehouse-server restore <file> --data-dir ${folder}\`. If no data ever existed, remove the empty file`,
  );
}
