import { createServer, request } from "node:http";
import { type Listening, listening } from "../../test/support/listening.ts";

/** A proxy before a service that counts what it passes on. */
export interface CountingProxy extends Listening {
  /** Requests so far, by method and path. */
  requests(): ReadonlyMap<string, number>;
}

/** Starts a proxy before the service at `target`. */
export async function startCountingProxy(target: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(target);
  const counts = new Map<string, number>();
  const server = createServer((incoming, outgoing) => {
    const { method = "GET", url: path = "/", headers } = incoming;
    const name = `${method} ${path.replace(/\?.*/, "")}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const onward = request({ hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => incoming.socket.destroy());
    incoming.pipe(onward);
  });
  return { ...(await listening(server)), requests: () => counts };
}
