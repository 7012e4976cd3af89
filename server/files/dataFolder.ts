import { existsSync, mkdirSync, mkdtempSync, rmdirSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { OperatorError } from "../OperatorError.ts";

/** Permission bits of the group and of other users. Windows does not have these bits. */
const othersMayWrite = 0o022;
export const othersMayDoAnything = 0o077;
/** Permission bits of other users, without the group. */
export const strangersMayDoAnything = 0o007;

/** Returns true if the file's group or other users have one of the given permissions. */
export function openToOthers(path: string, permissions: number): boolean {
  return process.platform !== "win32" && (statSync(path).mode & permissions) !== 0;
}

/**
 * Creates the data folder if it is missing. Only its owner can access the new folder.
 * @throws OperatorError the folder cannot be created or written, or is not a folder. Also thrown if other users may
 *   write to the folder, because they could store their own signing key.
 */
export function prepareDataFolder(folder: string): void {
  try {
    createFolder(folder);
  } catch (error) {
    throw unusable(folder, error);
  }
  checkDataFolder(folder);
}

/**
 * Checks the data folder. If the folder is missing, checks that the service can create it. Leaves no new file or
 * folder.
 * @throws OperatorError see {@link prepareDataFolder}
 */
export function checkFutureDataFolder(folder: string): void {
  try {
    const existing = nearestExisting(folder);
    if (existing !== folder) {
      tryFolder(existing);
      return;
    }
  } catch (error) {
    throw unusable(folder, error);
  }
  checkDataFolder(folder);
}

/** Returns the path if it exists, or else its nearest parent folder that exists. */
function nearestExisting(path: string): string {
  const parent = dirname(path);
  return parent === path || stats(path) !== undefined ? path : nearestExisting(parent);
}

/** Returns the metadata of a file or folder. Returns undefined if it does not exist. */
const stats = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false });

/**
 * Checks that a folder accepts new entries: creates a subfolder and removes it. File systems such as `/proc` accept no
 * new entries.
 */
const tryFolder = (folder: string): void => rmdirSync(mkdtempSync(join(folder, "trial-")));

/**
 * Checks an existing data folder. Leaves no new file or folder.
 * @throws OperatorError see {@link prepareDataFolder}
 */
function checkDataFolder(folder: string): void {
  try {
    tryFolder(folder);
  } catch (error) {
    // A full disk is not an error, because the service can still start and serve reads.
    if (!isFull(error)) throw unusable(folder, error);
  }
  if (openToOthers(folder, othersMayWrite)) {
    throw new OperatorError(
      `Other users may write to the data folder ${folder}. Run \`chmod 700 ${folder}\``,
    );
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code;
const isFull = (error: unknown): boolean => ["ENOSPC", "EDQUOT"].includes(String(codeOf(error)));

function unusable(folder: string, error: unknown): OperatorError {
  const text =
    codeOf(error) === "ENOENT"
      ? `Cannot create files in the data folder ${folder}: the file system accepts no new files. Choose another path.`
      : fileFailureText("write", `the data folder ${folder}`, error);
  return new OperatorError(text, { cause: error });
}

/**
 * Creates a folder and its missing parent folders. On a file system such as `/proc`, which reports a missing parent for
 * every new folder, `mkdirSync` with the option `recursive` never returns.
 */
function createFolder(folder: string, parentsExist = false): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // The error code for an existing folder depends on the file system. A read-only file system may report EROFS
    // instead of EEXIST.
    if (stats(folder)?.isDirectory()) return;
    const parent = dirname(folder);
    if (codeOf(error) !== "ENOENT" || parentsExist || parent === folder) throw error;
    createFolder(parent);
    createFolder(folder, true);
  }
}

/** Name of the file with the instance secret. */
export const SECRET_FILE = "secret";

/**
 * Rejects an empty database file, which can result from a broken disk or a failed copy. With an empty file, the service
 * would start without any users, and SQLite would discard the content of the write-ahead log.
 * @throws OperatorError the file is empty, but the secret in the data folder or a write-ahead log shows that data
 *   existed
 */
export function refuseEmptiedDatabase(folder: string, database: string): void {
  const size = (file: string) => stats(file)?.size;
  if (size(database) !== 0) return;
  if (!existsSync(join(folder, SECRET_FILE)) && !size(`${database}-wal`)) return;
  throw new OperatorError(
    `The database ${database} is empty (0 bytes), but a service has run here. Restore a backup with ` +
      `\`gatehouse-server restore <file> --data-dir ${folder}\`. If no data ever existed, remove the empty file`,
  );
}
