import { once } from "node:events";
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { othersMayDoAnything } from "../files/dataFolder.ts";
import { writeDurably } from "../files/durableFile.ts";
import { OperatorError } from "../OperatorError.ts";

/** Longest path of a unix socket that every system takes, in bytes (macOS: 103, Linux: 107). */
const longestPath = 103;
const SOCKET = "admin.sock";

const fits = (path: string): boolean => Buffer.byteLength(path) <= longestPath;
const inFolder = (folder: string): string => join(folder, SOCKET);
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
  if (await serviceListens(folder)) {
    throw new OperatorError(`Another service runs on the data folder ${folder}`);
  }
  removeSocket(folder);
  const path = inFolder(folder);
  if (fits(path)) return path;
  const short = inFolder(mkdtempSync(join(tmpdir(), "gatehouse-")));
  if (!fits(short)) {
    rmdirSync(dirname(short));
    throw new OperatorError(
      `The paths of the data folder and of the temporary folder (TMPDIR) are too long for the administration ` +
        `socket: one of ${path} and ${short} must have at most ${longestPath} bytes`,
    );
  }
  writeDurably(pointer(folder), short);
  return short;
}

/** Whether a service runs on a data folder. A socket that a killed process left behind refuses connections. */
export async function serviceListens(folder: string): Promise<boolean> {
  const connection = createConnection(socketPath(folder));
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
  return elsewhere(folder) ?? inFolder(folder);
}

/** Removes the socket and what {@link prepareSocketPath} made for it. */
export function removeSocket(folder: string): void {
  const path = elsewhere(folder);
  if (path !== undefined) {
    rmSync(path, { force: true });
    if (readdirSync(dirname(path)).length === 0) rmdirSync(dirname(path));
  }
  rmSync(pointer(folder), { force: true });
  rmSync(inFolder(folder), { force: true });
}

/**
 * The socket that a data folder's pointer names; undefined without a pointer, and for one that is stale. After a
 * restart of the machine the folder among the temporary files is gone, and any other user may have made it anew, to
 * be sent the passwords that are meant for the service: so it must belong to whoever wrote the pointer, alone.
 */
function elsewhere(folder: string): string | undefined {
  const written = lstatSync(pointer(folder), { throwIfNoEntry: false });
  if (!written?.isFile()) return undefined;
  const path = readFileSync(pointer(folder), "utf8");
  if (!isAbsolute(path) || basename(path) !== SOCKET) return undefined;
  const holder = lstatSync(dirname(path), { throwIfNoEntry: false });
  if (!holder?.isDirectory()) return undefined;
  const forItsUser = holder.uid === written.uid && (holder.mode & othersMayDoAnything) === 0;
  return forItsUser || process.platform === "win32" ? path : undefined;
}
