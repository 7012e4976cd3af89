import type { Connection } from "../resources/connection.ts";
import type { Io, Output } from "./io.ts";

/**
 * Works with the service that the environment names, or for what that leaves open the stack's configuration, and closes
 * the connection.
 * @param configuration by `namespace:key`, with secrets decrypted
 * @throws ConfigurationError naming the variable that is missing or wrong
 */
export async function withConnection<T>(
  { env, stderr }: Io,
  work: (connection: Connection) => Promise<T>,
  configuration: ReadonlyMap<string, string> = new Map(),
): Promise<T> {
  // Loaded here: the other commands need no client, and it would slow the start of them all.
  const { newConnection } = await import("../pulumi/newConnection.ts");
  const opened = newConnection((key) => configuration.get(key), env);
  try {
    return await tellingOf(stderr, opened, () => work(opened));
  } finally {
    await opened.client.close();
  }
}

/** Does work with a service, and writes beside an error which other release the service is of, if it is. */
export function tellingOf<T>(stderr: Output, connection: Connection, work: () => Promise<T>): Promise<T> {
  return connection.telling((line) => stderr.write(`${line}\n`), work);
}
