import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { OperatorError } from "../OperatorError.ts";

/** Longest path of a unix socket that every system takes, in bytes (macOS: 103, Linux: 107). */
const longestPath = 103;

const fits = (path: string): boolean => Buffer.byteLength(path) <= longestPath;
const inFolder = (folder: string): string => join(folder, "admin.sock");
/** Names the socket of a data folder whose own path is too long for one. */
const pointer = (folder: string): string => join(folder, "admin.sock.path");

/**
 * Where the owner of a data folder shall listen: in the folder, or where that path would be too long, in a new
 * folder for its user alone among the temporary files, which a file in the data folder names. What a process
 * that was killed left behind is removed.
 * @throws OperatorError when a service listens there (with another database), or when the temporary folder's
 * path is too long as well
 */
export async function prepareSocketPath(folder: string): Promise<string> {
  if (await isListenedOn(socketPath(folder))) {
    throw new OperatorError(`Another service runs on the data folder ${folder}`);
  }
  removeSocket(folder);
  const path = inFolder(folder);
  if (fits(path)) return path;
  const short = inFolder(mkdtempSync(join(tmpdir(), "gatehouse-")));
  if (!fits(short)) {
    rmSync(dirname(short), { recursive: true });
    throw new OperatorError(
      `The paths of the data folder and of the temporary folder (TMPDIR) are too long for the administration ` +
        `socket: one of ${path} and ${short} must have at most ${longestPath} bytes`,
    );
  }
  writeFileSync(pointer(folder), short, { mode: 0o600 });
  return short;
}

/** A socket that a killed process left behind refuses connections. */
async function isListenedOn(path: string): Promise<boolean> {
  const connection = createConnection(path);
  try {
    await once(connection, "connect");
    return true;
  } catch {
    return false;
  } finally {
    connection.destroy();
  }
}

/** Where the owner of a data folder listens, when there is one. */
export function socketPath(folder: string): string {
  return existsSync(pointer(folder)) ? readFileSync(pointer(folder), "utf8") : inFolder(folder);
}

/** Removes the socket and what {@link prepareSocketPath} made for it. */
export function removeSocket(folder: string): void {
  if (existsSync(pointer(folder))) {
    rmSync(dirname(readFileSync(pointer(folder), "utf8")), { recursive: true, force: true });
    rmSync(pointer(folder));
  }
  rmSync(inFolder(folder), { force: true });
}
