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

/** A proxy in front of a service. Tests can let the proxy lose responses, and act between two requests of a client. */
export interface LossyProxy extends Listening {
  /**
   * Calls `act` before each request until it returns a promise. The request is forwarded after the promise has
   * resolved.
   */
  before(act: (method: string, path: string) => Promise<void> | undefined): void;
  /** Loses the response to the next request that matches. The service still receives the request. */
  loseAnswer(matches: Matches): void;
  /**
   * After the first request that matches `first`, loses all responses to requests that match `then`. Call it with
   * undefined to stop the losses.
   */
  loseAnswers(first: Matches | undefined, then?: Matches): void;
  /** Returns the number of responses that the proxy has lost. */
  lost(): number;
}

/** Starts a proxy in front of the service at `target`. */
export async function startLossyProxy(target: string): Promise<LossyProxy> {
  let act: ((method: string, path: string) => Promise<void> | undefined) | undefined;
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

  const server = createServer(async (incoming, outgoing) => {
    const { method = "GET", url: path = "/" } = incoming;
    const acting = act?.(method, path);
    if (acting) {
      act = undefined;
      await acting;
    }
    const lose = () => {
      lost += 1;
      incoming.socket.destroy();
    };
    forward(target, incoming, outgoing, loses(method, path) ? { instead: lose } : {});
  });
  const set = (matches: Matches | undefined, others: Matches | undefined) => {
    first = matches;
    then = others;
    begun = false;
  };
  return {
    ...(await listening(server)),
    before: (action) => {
      act = action;
    },
    loseAnswer: (matches) => set(matches, undefined),
    loseAnswers: set,
    lost: () => lost,
  };
}

/** A proxy in front of any TCP server. The proxy can stop forwarding bytes, to simulate a server that hangs. */
export interface StallingProxy {
  readonly port: number;
  /** From now on, the proxy accepts connections and bytes, but forwards nothing. */
  stall(): void;
  /** From now on, the proxy forwards new connections again. Closes the connections that were open before. */
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
 * Starts a proxy that adds headers to each request to the service at `target`, including WebSocket requests. For
 * example, a service without the token for the internal listener can connect through a proxy that adds the token.
 */
export async function startAddingProxy(
  target: string,
  added: Readonly<Record<string, string>>,
): Promise<Listening> {
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) =>
    forward(target, incoming, outgoing, { headers: { ...incoming.headers, ...added } }),
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

/** The changes of a {@link startChangingProxy}. */
interface Changes {
  /** True to add an ETag to each response. */
  readonly addsEtag?: boolean;
  /** A field that the proxy removes from the JSON bodies of requests. */
  readonly drops?: string;
}

/** Starts a proxy that changes the requests to the service at `target`, or its responses. */
export async function startChangingProxy(
  target: string,
  { addsEtag = false, drops }: Changes,
): Promise<Listening> {
  const { hostname, port } = new URL(target);
  const server = createServer(async (incoming, outgoing) => {
    const { method = "GET", url: path = "/" } = incoming;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const sent = Buffer.concat(chunks).toString();
    const body =
      sent === "" ? "" : JSON.stringify({ ...JSON.parse(sent), ...(drops && { [drops]: undefined }) });
    const headers = { ...incoming.headers, "content-length": Buffer.byteLength(body) };
    const onward = request({ hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, {
        ...answer.headers,
        ...(addsEtag && { etag: '"proxy"' }),
      });
      answer.pipe(outgoing);
    });
    onward.on("error", () => incoming.socket.destroy());
    onward.end(body);
  });
  return listening(server);
}

/** The parts of a request or of its response that {@link forward} replaces. */
interface Replacements {
  /** The headers of the request. */
  readonly headers?: OutgoingHttpHeaders;
  /** Answers the client after the service has sent its complete response, and so has committed its changes. */
  readonly instead?: () => void;
}

/** Forwards a request to the service at `target`, and the response to the client. */
export function forward(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { headers = incoming.headers, instead }: Replacements = {},
): void {
  const { hostname, port } = new URL(target);
  const { method = "GET", url: path = "/" } = incoming;
  const onward = request({ hostname, port, method, path, headers }, (answer) => {
    if (instead) {
      answer.resume().on("end", instead);
      return;
    }
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on("error", () => incoming.socket.destroy());
  incoming.pipe(onward);
}

/** A proxy in front of a service that can delay a request. */
export interface HoldingProxy extends Listening {
  /**
   * Delays the next request with this method and path, for example `POST /api/namespaces`. Ignores the query of
   * requests.
   */
  hold(request: string): HeldRequest;
}

/** A request that the proxy delays. */
interface HeldRequest {
  /** Resolves when the request has arrived at the proxy. */
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
    forward(target, incoming, outgoing);
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
