import { Client } from "undici";
import { OperatorError } from "../OperatorError.ts";
import { socketPath } from "./socketPath.ts";

/** Codes of a socket that nobody listens on. */
const nobody = new Set(["ENOENT", "ECONNREFUSED"]);

/**
 * Sends one request to the service that runs on a data folder.
 * @returns the body of the answer
 * @throws OperatorError when no service runs there, or when it refuses, with its message
 */
export async function callAdmin<T>(
  folder: string,
  method: "GET" | "POST",
  path: string,
  body?: object,
): Promise<T> {
  const client = new Client("http://localhost", { socketPath: socketPath(folder) });
  try {
    const response = await client.request({
      method,
      path,
      ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const answer = (await response.body.json()) as T & { message?: string };
    if (response.statusCode >= 400)
      throw new OperatorError(answer.message ?? `status ${response.statusCode}`);
    return answer;
  } catch (error) {
    throw explained(error, folder);
  } finally {
    await client.close();
  }
}

function explained(error: unknown, folder: string): unknown {
  if (!(error instanceof Error) || !("code" in error)) return error;
  const code = String(error.code);
  if (nobody.has(code)) {
    return new OperatorError(
      `No service runs on the data folder ${folder}. Start it with ` +
        `\`gatehouse-server serve --data-dir ${folder}\`, or name another folder with --data-dir or GATEHOUSE_DATA_DIR.`,
    );
  }
  if (code === "EACCES" || code === "EPERM") {
    return new OperatorError(
      `Only the user that the service runs as may administer the data folder ${folder}`,
    );
  }
  return error;
}
