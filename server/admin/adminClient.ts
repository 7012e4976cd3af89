import { fileFailureText } from "@gatehouse-access/sdk/errors";
import type { Dispatcher } from "undici";
import { streamDurably } from "../files/durableFile.ts";
import { OperatorError } from "../OperatorError.ts";
import { CHANGES_HEADER } from "./requests.ts";
import { socketPath } from "./socketPath.ts";

/** Codes of the connection errors that occur if no process listens on the socket. */
const notListening = new Set(["ENOENT", "ECONNREFUSED"]);

/** Codes of the write errors that occur if the disk is full, the quota is used up, or the file is too large. */
const outOfSpace = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

type ResponseData = Pick<Dispatcher.ResponseData, "body" | "headers">;

/**
 * Sends a request to the service that uses a data folder, and reads the response.
 * @throws OperatorError no service uses the data folder, or the service rejects the request; the error has the message
 *   of the response
 */
async function sendRequest<T>(
  folder: string,
  request: Pick<Dispatcher.RequestOptions, "method" | "path" | "headers" | "body">,
  read: (response: ResponseData) => Promise<T>,
): Promise<T> {
  // The HTTP client is imported on demand, so that `serve` starts faster.
  const { Client } = await import("undici");
  const client = new Client("http://localhost", { socketPath: socketPath(folder) });
  try {
    const response = await client.request(request);
    if (response.statusCode < 400) return await read(response);
    const { message, error } = (await response.body.json()) as { message?: string; error?: string };
    // The router's own response to an unknown path has the field `error`. No other response has it.
    if (response.statusCode === 404 && error !== undefined) {
      throw new OperatorError(
        "The running service does not support this command, because it has a different version. Run the command with that " +
          "version: `npx @gatehouse-access/server@<version> …`. A restart with the installed version would migrate the " +
          "database, so back up the service first.",
      );
    }
    throw new OperatorError(message ?? `status ${response.statusCode}`);
  } catch (error) {
    throw explain(error, folder);
  } finally {
    await client.close();
  }
}

/**
 * Calls the administration server of the service that uses a data folder, and returns the response's body.
 * @throws OperatorError no service uses the data folder, or the service rejects the request; the error has the message
 *   of the response
 */
export function callAdmin<T>(
  folder: string,
  method: "GET" | "POST",
  path: string,
  body?: object,
): Promise<T> {
  const json = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return sendRequest(
    folder,
    { method, path, ...json },
    async (response) => (await response.body.json()) as T,
  );
}

/**
 * Copies the database of the service that uses a data folder into a SQLite file. Only the current user can read the
 * file. The file appears only when it is complete and on disk.
 * @returns the number of rows that the service wrote after it started and before the copy
 * @throws OperatorError no service uses the data folder, the service stores its data in PostgreSQL, or the file cannot
 *   be written
 */
export function fetchDatabase(folder: string, file: string): Promise<number> {
  return sendRequest(folder, { method: "GET", path: "/database" }, async (response) => {
    await writeBody(file, response);
    return Number(response.headers[CHANGES_HEADER]);
  });
}

/**
 * Writes a backup of the service that uses a data folder to a file. Has the same guarantees as {@link fetchDatabase}.
 */
export function fetchBackup(folder: string, file: string): Promise<void> {
  return sendRequest(folder, { method: "GET", path: "/backup" }, (response) => writeBody(file, response));
}

async function writeBody(file: string, { body, headers }: ResponseData): Promise<void> {
  await streamDurably(file, body).catch((error: NodeJS.ErrnoException) => {
    // The error comes from the connection to the service, not from the file.
    if (error.syscall === undefined) throw error;
    const size = outOfSpace.has(error.code ?? "") ? ` (${headers["content-length"]} bytes)` : "";
    throw new OperatorError(fileFailureText("write", `${file}${size}`, error), { cause: error });
  });
}

function explain(error: unknown, folder: string): unknown {
  if (!(error instanceof Error) || !("code" in error && "syscall" in error)) return error;
  if (error.syscall !== "connect") return error;
  const code = String(error.code);
  if (notListening.has(code)) {
    return new OperatorError(
      `No service runs on the data folder ${folder}. Start it with ` +
        `\`gatehouse-server serve --data-dir ${folder}\`, or choose another folder with --data-dir or GATEHOUSE_DATA_DIR.`,
    );
  }
  if (code === "EACCES" || code === "EPERM") {
    return new OperatorError(
      `Permission denied: only the service's user can administer the data folder ${folder}`,
    );
  }
  return error;
}
