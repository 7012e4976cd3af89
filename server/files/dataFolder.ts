import { existsSync, mkdirSync, mkdtempSync, rmdirSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
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
 * @throws OperatorError the folder cannot be created or written, is not a folder, or other users may write to it, so
 * that they could store their own signing key
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
 * Checks a data folder that may be missing. If it is missing, checks that the service can create it. Leaves no trace.
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

/** Returns the path, or its nearest parent folder that exists. */
function nearestExisting(path: string): string {
  const parent = dirname(path);
  return parent === path || stats(path) !== undefined ? path : nearestExisting(parent);
}

/** Returns the facts about a file or folder; undefined if it does not exist. */
const stats = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false });

/** Creates a folder in a folder, and removes it again. File systems such as `/proc` accept no new files. */
const tryFolder = (folder: string): void => rmdirSync(mkdtempSync(join(folder, "trial-")));

/**
 * Checks an existing data folder. Leaves no trace in the folder.
 * @throws OperatorError see {@link prepareDataFolder}
 */
function checkDataFolder(folder: string): void {
  try {
    tryFolder(folder);
  } catch (error) {
    // The service starts on a full disk, and serves reads.
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
 * Creates a folder and its missing parent folders. `mkdirSync` with the option `recursive` never ends on a file system
 * that reports a missing parent for every new folder, such as `/proc`.
 */
function createFolder(folder: string, parentsExist = false): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // The code for an existing folder depends on the file system: a read-only one may report EROFS, not EEXIST.
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
 * Rejects an empty database file, which a broken disk or a failed copy may leave. On an empty file, the service would
 * start without any users, and SQLite would discard the content of the write-ahead log.
 * @throws OperatorError the file is empty, but the data folder's secret or a write-ahead log shows that data existed
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
