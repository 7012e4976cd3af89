import type { FastifyInstance } from "fastify";

/**
 * Ends all servers at a time. Requests that have not ended when the time is up are cut off.
 * @param milliseconds for all of them together
 */
export async function closeInTime(servers: readonly FastifyInstance[], milliseconds: number): Promise<void> {
  const timer = setTimeout(() => {
    servers[0]?.log.warn("requests did not end in time and are cut off");
    for (const { server } of servers) server.closeAllConnections();
  }, milliseconds);
  try {
    await Promise.all(servers.map((server) => server.close()));
  } finally {
    clearTimeout(timer);
  }
}
