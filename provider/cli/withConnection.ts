import type { Connection } from "../service/connection.ts";
import type { Io, Output } from "./io.ts";

/**
 * Does work with the service that the environment and the stack's configuration name, and closes the connection.
 * @param configuration that of the stack, by `namespace:key` and with secrets decrypted; the environment wins over it
 * @throws ConfigurationError naming the variable that is missing or wrong
 */
export async function withConnection<T>(
  { env, stderr }: Io,
  work: (connection: Connection) => Promise<T>,
  configuration: ReadonlyMap<string, string> = new Map(),
): Promise<T> {
  // Loaded here, since other commands need no client, which would slow their start.
  const { newConnection } = await import("../service/newConnection.ts");
  const tell = (line: string) => stderr.write(`${line}\n`);
  const opened = newConnection((key) => configuration.get(key), { tell }, env);
  try {
    return await tellingOf(stderr, opened, () => work(opened));
  } finally {
    await opened.client.close();
  }
}

/** Does work with a service. When it fails, and the service is of another release, that is written beside the error. */
export function tellingOf<T>(stderr: Output, connection: Connection, work: () => Promise<T>): Promise<T> {
  return connection.telling((line) => stderr.write(`${line}\n`), work);
}
