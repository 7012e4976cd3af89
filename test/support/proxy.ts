import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from "node:http";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { type Listening, listening, listenOnNewPort } from "./listening.ts";

type Matches = (method: string, path: string) => boolean;

/** A proxy in front of a service that loses answers. */
export interface LossyProxy extends Listening {
  /** Loses the answer of the next request that matches. The request reaches the service. */
  loseAnswer(matches: Matches): void;
  /**
   * From the first request that matches `first`, loses all answers of requests that match `then`. Undefined stops this.
   */
  loseAnswers(first: Matches | undefined, then?: Matches): void;
  /** Returns the number of lost answers. */
  lost(): number;
}

/** Starts a proxy in front of the service at `target`. */
export async function startLossyProxy(target: string): Promise<LossyProxy> {
  const { hostname, port } = new URL(target);
  let first: Matches | undefined;
  let then: Matches | undefined;
  let begun = false;
  let lost = 0;

  const loses: Matches = (method, path) => {
    if (begun) return then?.(method, path) ?? false;
    if (!first?.(method, path)) return false;
    begun = true;
    return true;
  };

  const server = createServer((incoming, outgoing) => {
    const { method = "GET", url: path = "/" } = incoming;
    const { headers } = incoming;
    const lose = loses(method, path);
    const onward = request({ hostname, port, method, path, headers }, (answer) => {
      if (!lose) {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
        return;
      }
      // Reads the answer to its end first, so that the service has committed.
      answer.resume().on("end", () => {
        lost += 1;
        incoming.socket.destroy();
      });
    });
    onward.on("error", () => incoming.socket.destroy());
    incoming.pipe(onward);
  });
  const set = (matches: Matches | undefined, others: Matches | undefined) => {
    first = matches;
    then = others;
    begun = false;
  };
  return {
    ...(await listening(server)),
    loseAnswer: (matches) => set(matches, undefined),
    loseAnswers: set,
    lost: () => lost,
  };
}

/** A proxy in front of a server of any kind. It can stop forwarding bytes, as if the server hung. */
export interface StallingProxy {
  readonly port: number;
  /** From now on, accepts connections and bytes, and forwards nothing. */
  stall(): void;
  /** Forwards new connections again, and closes earlier ones. */
  recover(): void;
  stop(): Promise<void>;
}

/** Starts a proxy in front of a port of this machine. */
export async function startStallingProxy(target: number): Promise<StallingProxy> {
  let stalled = false;
  const sockets = new Set<Socket>();
  const forward = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on("data", (bytes) => {
      if (!stalled) to.write(bytes);
    });
    from.on("error", () => {});
    from.on("close", () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const server = createTcpServer((near) => {
    const far = connect(target, "127.0.0.1");
    forward(near, far);
    forward(far, near);
  });
  const cutOff = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: await listenOnNewPort(server),
    stall: () => {
      stalled = true;
    },
    recover: () => {
      cutOff();
      stalled = false;
    },
    async stop() {
      cutOff();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Starts a proxy that adds headers to requests to the service at `target`, also to WebSocket requests. A proxy does
 * this in front of the internal listener for a service that sends no token.
 */
export async function startAddingProxy(
  target: string,
  added: Readonly<Record<string, string>>,
): Promise<Listening> {
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) =>
    passOn(target, incoming, outgoing, { ...incoming.headers, ...added }),
  );
  server.on("upgrade", (incoming, socket, head) => {
    const onward = connect(Number(port), hostname);
    const headers = Object.entries({ ...incoming.headers, ...added }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    onward.write(`${[`${incoming.method} ${incoming.url} HTTP/1.1`, ...headers].join("\r\n")}\r\n\r\n`);
    onward.write(head);
    onward.pipe(socket).pipe(onward);
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
  });
  return listening(server);
}

function passOn(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  headers: OutgoingHttpHeaders = incoming.headers,
): void {
  const { hostname, port } = new URL(target);
  const { method = "GET", url: path = "/" } = incoming;
  const onward = request({ hostname, port, method, path, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on("error", () => incoming.socket.destroy());
  incoming.pipe(onward);
}

/** A proxy in front of a service that can delay a request. */
export interface HoldingProxy extends Listening {
  /** Delays the next request of this method and path, for example `POST /api/namespaces`. Ignores its query. */
  hold(request: string): HeldRequest;
}

/** A request that a proxy delays. */
export interface HeldRequest {
  /** Resolves once the request has arrived. */
  readonly arrived: Promise<void>;
  /** Forwards the request to the service. */
  release(): void;
}

/** Starts a proxy in front of the service at `target`. */
export async function startHoldingProxy(target: string): Promise<HoldingProxy> {
  const waiting: { delayed: string; arrive: () => void; released: Promise<void> }[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const [path] = (incoming.url ?? "/").split("?");
    const at = waiting.findIndex(({ delayed }) => delayed === `${incoming.method} ${path}`);
    const [match] = at < 0 ? [] : waiting.splice(at, 1);
    match?.arrive();
    await match?.released;
    passOn(target, incoming, outgoing);
  });
  return {
    ...(await listening(server)),
    hold(delayed) {
      const arrived = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      waiting.push({ delayed, arrive: arrived.resolve, released: released.promise });
      return { arrived: arrived.promise, release: released.resolve };
    },
  };
}
