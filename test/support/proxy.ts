import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy before a service that loses answers. */
export interface LossyProxy {
  readonly url: string;
  /** The next request that matches reaches the service, and its answer never comes back. */
  loseAnswer(matches: (method: string, path: string) => boolean): void;
  /** How many answers were lost. */
  lost(): number;
  stop(): Promise<void>;
}

/** Starts a proxy before the service at `target`. */
export async function startLossyProxy(target: string): Promise<LossyProxy> {
  const { hostname, port } = new URL(target);
  let matches: ((method: string, path: string) => boolean) | undefined;
  let lost = 0;
  const server = createServer((incoming, outgoing) => {
    const { method = "GET", url: path = "/", headers } = incoming;
    const lose = matches?.(method, path) ?? false;
    if (lose) matches = undefined;
    const onward = request({ hostname, port, method, path, headers }, (answer) => {
      if (!lose) {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
        return;
      }
      // Read to its end first: then the service has committed.
      answer.resume().on("end", () => {
        lost += 1;
        incoming.socket.destroy();
      });
    });
    onward.on("error", () => incoming.socket.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    loseAnswer(which) {
      matches = which;
    },
    lost: () => lost,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
