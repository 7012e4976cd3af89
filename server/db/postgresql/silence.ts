import type { Socket } from "node:net";
import { Client, DatabaseError, type Pool, type PoolClient } from "pg";

/** Maximum silence, in milliseconds. */
interface Bounds {
  /** Maximum silence of the whole database. */
  readonly database: number;
  /** Maximum silence of one connection in use while the database itself responds. */
  readonly connection: number;
}

/**
 * Limits how long statements on a pool's connections wait for a database that hangs because its process is stopped or
 * its packets are lost. A slow statement continues: if no data has arrived for half of the time, the pool's database
 * is checked with another connection. Any response proves that the database is alive.
 * @param url URL of the pool's database
 */
export function endSilence(pool: Pool, url: string, bounds: Bounds): void {
  const half = bounds.database / 2;
  const check = together(() => checkAlive(url, half));
  const inUse = new WeakSet<PoolClient>();

  const watch = (client: PoolClient) => {
    const socket = socketOf(client);
    let silence = { bytes: -1, since: 0 };
    socket.on("timeout", async () => {
      const now = performance.now();
      if (socket.bytesRead !== silence.bytes) silence = { bytes: socket.bytesRead, since: now };
      const lost = now - silence.since >= bounds.connection ? new Error("a lost connection") : await check();
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

// A TCP, TLS or Unix socket, which `pg` declares as a stream.
const socketOf = (client: PoolClient): Socket => client.connection.stream as Socket;

/**
 * Checks whether the database responds. Returns the error if it does not; undefined if it does, even if it only
 * refuses the connection.
 */
async function checkAlive(url: string, timeout: number): Promise<Error | undefined> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: timeout });
  // Errors after the response do not matter.
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

/** Makes calls share one result while a call is pending. */
function together<T>(check: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined;
  return () => {
    pending ??= check().finally(() => {
      pending = undefined;
    });
    return pending;
  };
}
