import type { Socket } from "node:net";
import { sharedWhilePending } from "@gatehouse-access/sdk/promises";
import { Client, DatabaseError, type Pool, type PoolClient } from "pg";

/** Timeouts for a database that sends no data, in milliseconds. */
interface Bounds {
  /** Maximum time without a response from the database on any connection. */
  readonly database: number;
  /**
   * Maximum time without data on one connection in use. This maximum applies while the database responds on other
   * connections.
   */
  readonly connection: number;
}

/**
 * Limits how long statements on a pool's connections wait for a database that hangs. A database hangs if its process is
 * stopped or its packets are lost. After half of the maximum time without data, the service checks the database on a
 * new connection. If the database sends any response, it is alive, and the slow statement continues.
 * @param url URL of the pool's database
 */
export function endSilence(pool: Pool, url: string, bounds: Bounds): void {
  const half = bounds.database / 2;
  const check = sharedWhilePending(() => checkAlive(url, half));
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
      else socket.destroy(new Error("Connection terminated: the database did not respond", { cause: lost }));
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

// Returns the TCP, TLS or Unix socket of a connection. The types of `pg` declare the socket as a stream.
const socketOf = (client: PoolClient): Socket => client.connection.stream as Socket;

/**
 * Checks whether the database responds. Returns undefined if the database responds, even with a rejected connection.
 * Otherwise, returns the error.
 */
async function checkAlive(url: string, timeout: number): Promise<Error | undefined> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: timeout });
  // Errors that occur after the response do not matter.
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
