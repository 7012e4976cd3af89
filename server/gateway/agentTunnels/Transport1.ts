import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { liveConnections } from "@gatehouse-access/sdk/contract";
import { createWebSocketStream, type WebSocket } from "ws";
import {
  boundFrames,
  closeWebSocket,
  type WebSocketHandler,
  webSocketHandler,
} from "../../http/listener/webSockets.ts";
import { UnreachableError } from "../protocol.ts";
import { ANSWER_TIMEOUT, type Transport, type TunnelLink } from "./Transport.ts";

/**
 * Maximum number of frames without data, such as pings, that an agent may send over a connection in 30 seconds. Agents
 * usually send at most one such frame.
 */
const FRAMES_WITHOUT_DATA = 100;

/** The byte that ends a line of JSON. */
const LINE_END = 0x0a;
const KEEP_ALIVE = Buffer.from('{"command":"keep-alive"}\n');

/**
 * Converts a WebSocket to a byte stream. Both directions of the stream end together, because a WebSocket has no
 * half-close. An error closes the stream and is otherwise ignored.
 */
export function streamOver(socket: WebSocket): Duplex {
  const stream = createWebSocketStream(socket);
  return stream.on("error", () => {}).on("end", () => stream.destroy());
}

interface Dial {
  readonly transport: Transport1;
  readonly timer: NodeJS.Timeout;
  pickedUp(stream: Duplex): void;
  failed(reason: string): void;
}

/**
 * The announced connections: connections that this instance has announced to agents, and that the agents must pick up.
 * An agent picks up a connection by opening a WebSocket to the service.
 */
export class Dials {
  readonly #instanceId: string;
  readonly #waiting = new Map<string, Dial>();

  constructor(instanceId: string) {
    this.#instanceId = instanceId;
  }

  /**
   * Announces a connection to an agent, and waits until the agent picks it up.
   * @param announce receives the path at which the agent can pick up the connection
   * @throws UnreachableError the agent does not pick up the connection
   */
  dial(transport: Transport1, announce: (path: string) => void): Promise<Duplex> {
    const id = randomBytes(16).toString("hex");
    return new Promise((resolve, reject) => {
      const failed = (reason: string) => reject(new UnreachableError(reason));
      const timer = setTimeout(() => this.#take(id)?.failed("did not answer in time"), ANSWER_TIMEOUT);
      this.#waiting.set(id, { transport, timer, pickedUp: resolve, failed });
      announce(`/ssh/revdial?revdial.dialer=${this.#instanceId}&uuid=${id}`);
    });
  }

  /**
   * Returns the handler of an agent's request to pick up an announced connection. Returns undefined if no connection
   * with this id is waiting. Each connection can be picked up only once.
   */
  pickUp(id: string): WebSocketHandler | undefined {
    if (!this.#waiting.has(id)) return undefined;
    // Remove the connection only after the WebSocket has opened, so that a request without an upgrade does not use up
    // the connection.
    return webSocketHandler((socket) => {
      const dial = this.#take(id);
      if (dial === undefined) {
        closeWebSocket(socket, 1008);
        return;
      }
      boundFrames(
        socket,
        FRAMES_WITHOUT_DATA,
        (frame, data) => frame !== "message" || (data as Buffer).length === 0,
      );
      dial.pickedUp(streamOver(socket));
    });
  }

  /** Stops waiting for a connection, because the agent reported that it could not pick up the connection. */
  failed(transport: Transport1, id: string): void {
    // Without this comparison, an agent could cancel a connection that the agent of another device must pick up.
    if (this.#waiting.get(id)?.transport === transport)
      this.#take(id)?.failed("could not pick up the connection");
  }

  /** Stops waiting for the connections of a closed tunnel. */
  closed(transport: Transport1): void {
    for (const [id, dial] of this.#waiting) {
      if (dial.transport === transport) this.#take(id)?.failed("hung up");
    }
  }

  #take(id: string): Dial | undefined {
    const dial = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(dial?.timer);
    return dial;
  }
}

/**
 * Transport 1: lines of JSON with which the service announces new connections to the agent. The agent picks up a
 * connection by opening another WebSocket to the service.
 */
export class Transport1 implements Transport {
  readonly version = 1;
  readonly #link: TunnelLink;
  readonly #dials: Dials;
  /** The received part of an incomplete line. */
  #rest: Buffer | undefined;

  constructor(link: TunnelLink, dials: Dials) {
    this.#link = link;
    this.#dials = dials;
  }

  receive(data: Buffer): void {
    if (!this.#link.count(data.length, 0)) return;
    let bytes = this.#rest === undefined ? data : Buffer.concat([this.#rest, data]);
    for (let end = bytes.indexOf(LINE_END); end !== -1; end = bytes.indexOf(LINE_END)) {
      if (!this.#link.count(0, 1)) return;
      this.#handleLine(bytes.subarray(0, end).toString());
      bytes = bytes.subarray(end + 1);
    }
    // Copy the remainder, because a slice would keep the whole message in memory.
    this.#rest = bytes.length === 0 ? undefined : Buffer.from(bytes);
    if (bytes.length > liveConnections.TUNNEL_LINE_MAX) this.#link.fail("a line that is too long");
  }

  keepAlive(): void {
    // All tunnels can share this buffer, because the WebSocket library masks a copy and never changes the buffer.
    this.#link.send(KEEP_ALIVE);
  }

  async connect(session: string): Promise<Duplex> {
    const stream = await this.#dials.dial(this, (path) =>
      this.#link.send(Buffer.from(`${JSON.stringify({ command: "conn-ready", connPath: path })}\n`)),
    );
    // Send the request as a separate message, because agents lose data that follows the request in the same message.
    stream.write(`GET /ssh/${session} HTTP/1.1\r\nHost: gateway\r\n\r\n`);
    return stream;
  }

  closed(): void {
    this.#dials.closed(this);
  }

  /** Handles a line that an agent sent. Ignores keep-alives and the unknown commands of newer agents. */
  #handleLine(line: string): void {
    const dial = failedDial(line);
    if (dial === null) this.#link.fail("a line that is not JSON");
    else if (dial !== undefined) this.#dials.failed(this, dial);
  }
}

/**
 * Returns the id of the connection if the line reports a failed pickup. Returns null if the line is not JSON. Returns
 * undefined for any other line.
 */
function failedDial(line: string): string | null | undefined {
  let message: { readonly command?: unknown; readonly connPath?: unknown } | null;
  try {
    message = JSON.parse(line);
  } catch {
    return null;
  }
  if (message?.command !== "pickup-failed" || typeof message.connPath !== "string") return undefined;
  return new URLSearchParams(message.connPath.split("?")[1]).get("uuid") ?? undefined;
}
