import { connect, createServer, type Socket } from "node:net";
import { listenOnNewPort } from "./listening.ts";

/** A relay with a fixed address, which forwards connections to services. */
export interface Relay {
  readonly url: string;
  /** Closes the relay and its connections. */
  stop(): void;
}

/**
 * Forwards connections from a fixed address.
 * @param portFor returns the target port on this machine for a connection, from the first bytes that the client sends
 */
export async function startRelay(portFor: (begin: string) => number): Promise<Relay> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    sockets.add(near);
    near.on("error", () => {});
    near.once("data", (begin: Buffer) => {
      const far = connect(portFor(begin.toString("latin1")), "127.0.0.1");
      sockets.add(far);
      far.on("error", () => {});
      far.on("close", () => near.destroy());
      near.on("close", () => far.destroy());
      far.write(begin);
      near.pipe(far).pipe(near);
    });
  });
  return {
    url: `http://127.0.0.1:${await listenOnNewPort(server)}`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
