import type { FastifyInstance } from "fastify";

/** How often connections that have become idle are closed, in milliseconds. */
const IDLE_SWEEP = 100;

/**
 * Ends all servers at a time. Requests that have not ended when the time is up are cut off.
 * @param milliseconds for all of them together
 */
export async function closeInTime(servers: readonly FastifyInstance[], milliseconds: number): Promise<void> {
  const timer = setTimeout(() => {
    servers[0]?.log.warn("requests did not end in time and are cut off");
    for (const { server } of servers) server.closeAllConnections();
  }, milliseconds);
  // A connection whose request has ended waits for another one; Fastify closes idle ones only at the beginning.
  const sweep = setInterval(() => {
    for (const { server } of servers) server.closeIdleConnections();
  }, IDLE_SWEEP);
  try {
    await Promise.all(servers.map((server) => server.close()));
  } finally {
    clearInterval(sweep);
    clearTimeout(timer);
  }
}
