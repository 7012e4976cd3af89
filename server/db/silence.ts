import type { Socket } from "node:net";
import { Client, DatabaseError, type Pool, type PoolClient } from "pg";

/** How long there may be no sign of life, in milliseconds. */
interface Bounds {
  /** Of the whole database. */
  readonly database: number;
  /** On one connection in use, of a database that lives. */
  readonly connection: number;
}

/**
 * Bounds how long work waits on a pool's connections for a database that hangs: its process is stopped, or its packets
 * are lost. A statement that only takes long goes on: where nothing has come for half of the time, the database is
 * asked for another connection, and if it answers that, it lives.
 * @param url of the pool's database
 */
export function endSilence(pool: Pool, url: string, bounds: Bounds): void {
  const half = bounds.database / 2;
  const ask = together(() => askForLife(url, half));
  const inUse = new WeakSet<PoolClient>();

  const watch = (client: PoolClient) => {
    const socket = socketOf(client);
    let silence = { bytes: -1, since: 0 };
    socket.on("timeout", async () => {
      const now = performance.now();
      if (socket.bytesRead !== silence.bytes) silence = { bytes: socket.bytesRead, since: now };
      const lost = now - silence.since >= bounds.connection ? new Error("a lost connection") : await ask();
      if (!inUse.has(client) || socket.bytesRead !== silence.bytes) return;
      if (lost === undefined) socket.setTimeout(half);
      else socket.destroy(new Error("Connection terminated: the database is silent", { cause: lost }));
    });
  };
  pool.on("connect", watch);
  pool.on("acquire", (client) => {
    inUse.add(client);
    socketOf(client).setTimeout(half);
  });
  pool.on("release", (_error, client) => {
    inUse.delete(client);
    socketOf(client).setTimeout(0);
  });
}

// Of TCP, of TLS or of the file system, which `pg` calls by what they have in common.
const socketOf = (client: PoolClient): Socket => client.connection.stream as Socket;

/** What speaks against the database's life; undefined: it answers, even if only that it wants no more connections. */
async function askForLife(url: string, timeout: number): Promise<Error | undefined> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: timeout });
  // Whatever comes after the answer is of no interest.
  client.on("error", () => {});
  try {
    await client.connect();
    return undefined;
  } catch (error) {
    if (error instanceof DatabaseError) return undefined;
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    client.connection.stream.destroy();
  }
}

/** Whoever asks while an answer is awaited gets the same one. */
function together<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask().finally(() => {
      asked = undefined;
    });
    return asked;
  };
}
