import type { Connection } from "../resources/connection.ts";

/**
 * Works with the service that the environment names, and closes the connection.
 * @throws ConfigurationError naming the variable that is missing or wrong
 */
export async function withConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
  // Loaded here: the other commands need no client, and it would slow the start of them all.
  const { connection } = await import("../pulumi/session.ts");
  const opened = connection();
  try {
    return await work(opened);
  } finally {
    await opened.client.close();
  }
}
