import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, createServer, type Server as TcpServer } from "node:net";

/** A server of a test's own. */
export interface Listening {
  readonly url: string;
  /** Cuts off what is connected. */
  stop(): Promise<void>;
}

/** The ports that services of this process had. */
const given = new Set<number>();

/**
 * Whether no service of this process had the port before; from now on, one has. Test files share their modules, and the
 * SDK keeps one session for each user and address as long as a process lives: a service at an address of an earlier one
 * would meet that one's login, its namespace, and its refusals.
 */
export function isNewPort(port: number): boolean {
  if (given.has(port)) return false;
  given.add(port);
  return true;
}

/** Has a server listen on a free port of this machine that no service of this process had before; gives the port. */
export async function listenOnNewPort(server: TcpServer): Promise<number> {
  for (;;) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    if (isNewPort(port)) return port;
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Returns a free port of this machine that no service of this process had before. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listenOnNewPort(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Has a server listen, see {@link listenOnNewPort}. */
export async function listening(server: Server): Promise<Listening> {
  return {
    url: `http://127.0.0.1:${await listenOnNewPort(server)}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
