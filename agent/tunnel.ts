import { type Agent as HttpAgent, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type HttpProxy, parseRetryAfter } from "@gatehouse-access/sdk";
import { createWebSocketStream, WebSocket } from "ws";
import { proxyAgent } from "./proxyAgent.ts";
import type { Log } from "./SessionChannel.ts";
import type { SshServer } from "./SshServer.ts";

/**
 * Interval at which the agent sends keep-alive messages, in milliseconds. `SILENCE` is the maximum time between two
 * keep-alive messages from the service.
 */
const KEEP_ALIVE = 30_000;
const SILENCE = 35_000;
/**
 * Maximum length, in bytes, of one line that the service sends on the tunnel. `HEAD_MAX` is the maximum length of the
 * HTTP request head on a picked-up connection.
 */
const LINE_MAX = 4096;
const HEAD_MAX = 8192;
/** Timeout, in milliseconds, for opening the tunnel or picking up a connection that the service announces. */
const PICK_UP_TIMEOUT = 20_000;
/**
 * Required prefix of the WebSocket paths that the service announces on the tunnel. The agent connects only to paths
 * with this prefix.
 */
const PICK_UP_PATH = "/ssh/revdial?";

interface TunnelOptions {
  readonly url: string;
  /** The proxy to use for connections to the service; undefined to connect directly. */
  readonly proxy: HttpProxy | undefined;
  readonly token: string;
  readonly server: SshServer;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Returns the current Unix time in milliseconds. */
  readonly now: () => number;
}

interface Line {
  readonly command?: unknown;
  readonly connPath?: unknown;
}

/** The service refused the tunnel. */
export class RefusedError extends Error {
  /** HTTP status of the service's response. */
  readonly status: number;
  /** Time that the service requests with `Retry-After`, in milliseconds; undefined if the response has no such header. */
  readonly retryAfter: number | undefined;

  constructor(status: number, retryAfter: number | undefined) {
    super(`the service refuses the tunnel: ${status} ${STATUS_CODES[status] ?? ""}`.trimEnd());
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Returns a WebSocket URL for a path below the service's address. */
function addressOf(url: string, path: string): URL {
  const address = new URL(url.replace(/\/+$/, "") + path);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return address;
}

/**
 * Opens the tunnel, and returns when the tunnel ends. The service announces connections on the tunnel. The agent picks
 * up each connection: it opens a WebSocket at the announced path.
 * @throws RefusedError the service refuses the tunnel
 * @throws Error the service cannot be reached
 */
export function runTunnel({ url, proxy, token, server, log, signal, now }: TunnelOptions): Promise<void> {
  const agent = proxy && proxyAgent(proxy, url);
  const socket = new WebSocket(addressOf(url, "/ssh/connection"), {
    agent,
    headers: { Authorization: `Bearer ${token}` },
    handshakeTimeout: PICK_UP_TIMEOUT,
    maxPayload: LINE_MAX * 4,
    perMessageDeflate: false,
    followRedirects: false,
  });
  const send = (line: object) => socket.send(Buffer.from(`${JSON.stringify(line)}\n`));
  const answer = (line: Line) => {
    if (line.command === "keep-alive") silence.refresh();
    if (line.command !== "conn-ready") return;
    const { connPath } = line;
    pickUp(url, agent, connPath, server).catch((error: Error) => {
      log("warn", "cannot pick up a connection", { reason: error.message });
      if (socket.readyState === socket.OPEN) send({ command: "pickup-failed", connPath, err: error.message });
    });
  };
  const silence = setTimeout(() => socket.terminate(), SILENCE);
  const stop = () => socket.terminate();
  signal.addEventListener("abort", stop);
  let timer: NodeJS.Timeout | undefined;
  let rest = "";
  return new Promise<void>((resolve, reject) => {
    socket.on("open", () => {
      log("info", "tunnel open");
      send({ command: "keep-alive" });
      timer = setInterval(() => send({ command: "keep-alive" }), KEEP_ALIVE);
    });
    socket.on("message", (data, binary) => {
      const lines = (rest + String(data)).split("\n");
      rest = lines.pop() ?? "";
      const read = lines.map(readLine);
      if (!binary || rest.length > LINE_MAX || read.includes(undefined)) socket.terminate();
      else for (const line of read) answer(line as Line);
    });
    socket.on("unexpected-response", (_request, { statusCode = 0, headers }) => {
      reject(new RefusedError(statusCode, parseRetryAfter(headers["retry-after"], now())));
      socket.terminate();
    });
    socket.on("error", reject);
    socket.on("close", () => resolve());
  }).finally(() => {
    clearTimeout(silence);
    clearInterval(timer);
    signal.removeEventListener("abort", stop);
  });
}

/** Parses a line of the tunnel. Returns undefined if the line is not a JSON object. */
function readLine(line: string): Line | undefined {
  try {
    const read: unknown = JSON.parse(line);
    return typeof read === "object" && read !== null ? read : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Picks up a connection: opens a WebSocket at the path that the service announced.
 * @throws Error the path does not have the required prefix, or the service has no such connection
 */
async function pickUp(
  url: string,
  agent: HttpAgent | undefined,
  path: unknown,
  server: SshServer,
): Promise<void> {
  if (typeof path !== "string" || !path.startsWith(PICK_UP_PATH)) {
    throw new Error(`connPath must begin with ${PICK_UP_PATH}`);
  }
  const socket = new WebSocket(addressOf(url, path), {
    agent,
    handshakeTimeout: PICK_UP_TIMEOUT,
    perMessageDeflate: false,
  });
  socket.on("message", (_data, binary) => binary || socket.terminate());
  // Reads immediately, since the service's request may arrive together with its handshake response.
  answerRequest(createWebSocketStream(socket), server);
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
}

/**
 * Processes the single HTTP request that the service sends on a picked-up connection. The path of the request selects
 * the action. The agent either serves SSH on this connection, or closes the session whose uid is in the path.
 */
function answerRequest(stream: Duplex, server: SshServer): void {
  // A WebSocket cannot send EOF in one direction only. So the end of one direction closes the whole connection.
  stream.on("error", () => stream.destroy()).on("end", () => stream.destroy());
  let head = Buffer.alloc(0);
  const read = (data: Buffer) => {
    head = Buffer.concat([head, data]);
    const end = head.indexOf("\r\n\r\n");
    if (end === -1 && head.length <= HEAD_MAX) return;
    stream.off("data", read);
    stream.pause();
    const [, path] = /^GET (\S+) HTTP\/1\.1\r\n/.exec(head.toString("latin1")) ?? [];
    const [, close, session] = /^\/ssh\/(close\/)?([\w-]+)$/.exec(path ?? "") ?? [];
    const rest = head.subarray(end + 4);
    if (end === -1 || session === undefined) {
      const body = '{"message":"Not Found"}';
      stream.end(
        `HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
    } else if (close) {
      server.close(session);
      stream.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    } else {
      if (rest.length > 0) stream.unshift(rest);
      server.accept(stream, session);
    }
  };
  stream.on("data", read);
}
