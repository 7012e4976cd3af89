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
/** Name of the pointer file, which contains the path of the socket if the default path is too long for a socket. */
const pointer = (folder: string): string => join(folder, "admin.sock.path");

/**
 * Returns the path of the socket on which the service of a data folder must listen. The socket is in the data folder if
 * the resulting path is short enough for the operating system. Otherwise, the socket is in a new private temporary
 * folder, and a pointer file in the data folder contains its path. Removes the socket files that a killed process left
 * behind.
 * @throws OperatorError a different service already listens on the socket of the data folder, or the path in the
 *   temporary folder is also too long
 */
export async function prepareSocketPath(folder: string): Promise<string> {
  if (await serviceListens(folder)) {
    throw new OperatorError(
      `Another gatehouse-server process is using the data folder ${folder}. Stop it first`,
    );
  }
  removeSocket(folder);
  const path = placeSocket(folder, SOCKET, "administration socket");
  if (path !== inFolder(folder)) writeDurably(pointer(folder), path);
  return path;
}

/**
 * Returns true if a running service uses a data folder. If the service was killed, its socket still exists but refuses
 * connections.
 */
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

/** Returns the path of the socket on which the running service of a data folder listens. */
export function socketPath(folder: string): string {
  return elsewhere(folder) ?? inFolder(folder);
}

/** Removes the socket and the files that {@link prepareSocketPath} created for it. */
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
 * Returns the socket path that is in the pointer file of a data folder. Returns undefined if the pointer file does not
 * exist, or if the path cannot be trusted. A restart of the machine deletes temporary folders, and an attacker could
 * recreate such a folder to receive passwords. Therefore, the path is returned only if the owner of the pointer file
 * also owns the folder, and no other user has access to the folder.
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
