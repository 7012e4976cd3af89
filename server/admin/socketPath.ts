import { once } from "node:events";
import { lstatSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { basename, dirname, isAbsolute, join } from "node:path";
import { othersMayDoAnything } from "../files/dataFolder.ts";
import { writeDurably } from "../files/durableFile.ts";
import { placeSocket } from "../files/socketPlace.ts";
import { OperatorError } from "../OperatorError.ts";

const SOCKET = "admin.sock";

const inFolder = (folder: string): string => join(folder, SOCKET);
/** File that names the socket of a data folder whose own path is too long for one. */
const pointer = (folder: string): string => join(folder, "admin.sock.path");

/**
 * The path at which the service of a data folder is to listen: in the data folder or, if that path would be too long,
 * in a new private folder among the temporary files, which a file in the data folder names. Leftovers of a killed
 * process are removed.
 * @throws OperatorError when a service listens there (with another database), or when the temporary folder's path is
 * too long as well
 */
export async function prepareSocketPath(folder: string): Promise<string> {
  if (await serviceListens(folder)) {
    throw new OperatorError(`Another service runs on the data folder ${folder}`);
  }
  removeSocket(folder);
  const path = placeSocket(folder, SOCKET, "administration socket");
  if (path !== inFolder(folder)) writeDurably(pointer(folder), path);
  return path;
}

/** Whether a service runs on a data folder. The socket of a killed process refuses connections. */
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

/** The path of the socket on which the service of a data folder listens, if one runs. */
export function socketPath(folder: string): string {
  return elsewhere(folder) ?? inFolder(folder);
}

/** Removes the socket and the files that {@link prepareSocketPath} made for it. */
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
 * The socket that a data folder's pointer file names; undefined without one, or if it is stale. A restart of the
 * machine deletes temporary folders, and another user could make this one again to receive the passwords meant for the
 * service. So it must belong to the user who wrote the pointer file, and be closed to all others.
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
