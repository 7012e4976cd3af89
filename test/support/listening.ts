import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, createServer, type Server as TcpServer } from "node:net";

/** A server that a test started. */
export interface Listening {
  readonly url: string;
  /** Closes the server and its connections. */
  stop(): Promise<void>;
}

/** The ports that services of this process have used so far. */
const usedPorts = new Set<number>();

/**
 * Returns true if no service of this process has used the port, and marks the port as used. Test files share modules,
 * and the SDK keeps one session for each user and address until the process ends. On a reused port, tests of a new
 * service would get the login, the namespace and the errors of an earlier service.
 */
export function isNewPort(port: number): boolean {
  if (usedPorts.has(port)) return false;
  usedPorts.add(port);
  return true;
}

/** Starts a server on a free port of this machine that no service of this process has used. Returns the port. */
export async function listenOnNewPort(server: TcpServer): Promise<number> {
  for (;;) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    if (isNewPort(port)) return port;
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Returns a free port of this machine that no service of this process has used. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listenOnNewPort(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a server, see {@link listenOnNewPort}. */
export async function listening(server: Server): Promise<Listening> {
  return {
    url: `http://127.0.0.1:${await listenOnNewPort(server)}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
