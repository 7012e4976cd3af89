import { createServer, request } from "node:http";
import { type Listening, listening } from "../../support/listening.ts";

type Matches = (method: string, path: string) => boolean;

/** A proxy in front of a service, through which a test acts between two requests of a client. */
export interface ForwardingProxy extends Listening {
  /**
   * Calls `act` before each request until it returns a promise. The request is forwarded after the promise has
   * resolved.
   */
  before(act: (method: string, path: string) => Promise<void> | undefined): void;
  /** Loses the answer to the next request that matches. The service still receives the request. */
  loseAnswer(matches: Matches): void;
}

/** Starts a proxy in front of the service at `target`. */
export async function startForwardingProxy(target: string): Promise<ForwardingProxy> {
  const { hostname, port } = new URL(target);
  let act: ((method: string, path: string) => Promise<void> | undefined) | undefined;
  let isLost: Matches | undefined;
  const server = createServer(async (incoming, outgoing) => {
    const { method = "GET", url: path = "/", headers } = incoming;
    const acting = act?.(method, path);
    if (acting) {
      act = undefined;
      await acting;
    }
    const loses = isLost?.(method, path) ?? false;
    if (loses) isLost = undefined;
    const onward = request({ hostname, port, method, path, headers }, (answer) => {
      if (loses) {
        answer.resume().on("end", () => incoming.socket.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => incoming.socket.destroy());
    incoming.pipe(onward);
  });
  return {
    ...(await listening(server)),
    before: (action) => {
      act = action;
    },
    loseAnswer: (matches) => {
      isLost = matches;
    },
  };
}
