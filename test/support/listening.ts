import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A server of a test's own. */
export interface Listening {
  readonly url: string;
  /** Cuts off what is connected. */
  stop(): Promise<void>;
}

/** Has a server listen on a free port of this machine. */
export async function listening(server: Server): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
