import { randomBytes } from "node:crypto";
import { liveConnections } from "@gatehouse-access/sdk/contract";
import type { WebSocket } from "ws";

/** The byte that ends a line of JSON. */
const LINE_END = 0x0a;

/**
 * Maximum number of bytes and lines that an agent may send between two checks. Agents send a keep-alive every 30
 * seconds, and a line for each connection that they failed to pick up. Agents of pending devices receive no
 * connections.
 */
const PENDING = { bytes: 16 * 1024, lines: 50 };
const ACCEPTED = { bytes: 1024 * 1024, lines: 5_000 };

/** The device of a tunnel. */
export interface TunneledDevice {
  readonly uid: string;
  readonly tenantId: string;
  /** The network from which the device's agent connects. */
  readonly network: string;
}

/** A request of a device's agent to open a tunnel. */
export interface TunnelRequest extends TunneledDevice {
  /** Whether the agent has proven that it has the device's private key. */
  readonly proven: boolean;
  /** The agent's address and the request's id, for the audit trail. */
  readonly address: string;
  readonly requestId: string;
}

/** The state of a tunnel at its start. */
interface TunnelStart {
  /** Whether the device is pending. */
  readonly pending: boolean;
  /** Whether the agent has proven that it has the device's private key. */
  readonly proven: boolean;
  readonly openedAt: Date;
}

/** Callbacks with which a tunnel notifies its owner of events. */
export interface TunnelEvents {
  /** The agent has answered a ping, so the device is online. */
  alive(tunnel: AgentTunnel): void;
  /** The agent could not pick up a connection. */
  failed(tunnel: AgentTunnel, dial: string): void;
  closed(tunnel: AgentTunnel): void;
}

const KEEP_ALIVE = Buffer.from('{"command":"keep-alive"}\n');

/**
 * The tunnel of a device's agent: an open WebSocket over which the service announces new connections to the device. The
 * agent picks up a connection by opening another WebSocket to the service. Ten thousand tunnels may be open, so a
 * tunnel uses little memory and has no timers.
 */
export class AgentTunnel {
  readonly id = randomBytes(16).toString("hex");
  readonly device: TunneledDevice;
  readonly openedAt: Date;
  /** Whether the device is pending. */
  pending: boolean;
  /** Whether the agent has proven that it has the device's private key. */
  proven: boolean;
  readonly #socket: WebSocket;
  readonly #events: TunnelEvents;
  /** The received part of a line whose end has not arrived yet. */
  #rest: Buffer | undefined;
  #answered = true;
  /** Number of bytes and lines received since the last check. */
  #bytes = 0;
  #lines = 0;
  #isFlooding = false;

  constructor(socket: WebSocket, device: TunneledDevice, start: TunnelStart, events: TunnelEvents) {
    this.#socket = socket;
    this.#events = events;
    this.device = device;
    this.pending = start.pending;
    this.proven = start.proven;
    this.openedAt = start.openedAt;
    socket.on("message", (data, binary) => this.#receive(data as Buffer, binary));
    socket.on("pong", () => {
      this.#answered = true;
      events.alive(this);
    });
    // Errors are ignored, because the event `close` follows every error.
    socket.on("error", () => {});
    socket.on("close", () => events.closed(this));
    this.check();
  }

  /**
   * Sends a keep-alive, or ends the tunnel if the agent has not answered since the last call or has sent too much. The
   * holder of the tunnel calls this method every 25 seconds, because agents disconnect 35 seconds after the last
   * keep-alive. A tunnel with too much data ends only at this call and not at once, because the agent would also
   * reconnect at once.
   */
  check(): void {
    this.#bytes = 0;
    this.#lines = 0;
    if (!this.#answered || this.#isFlooding) {
      this.#socket.terminate();
      return;
    }
    this.#answered = false;
    // All tunnels can share this buffer, because the library copies it for masking and never changes it.
    this.#socket.send(KEEP_ALIVE);
    this.#socket.ping();
  }

  /** Announces a connection that the agent must pick up at a path of the service. */
  announce(path: string): void {
    this.#socket.send(Buffer.from(`${JSON.stringify({ command: "conn-ready", connPath: path })}\n`));
  }

  /** Whether the tunnel is closed or closing. */
  get isClosed(): boolean {
    return this.#socket.readyState !== this.#socket.OPEN;
  }

  /** Closes the tunnel. Agents reconnect at once. */
  close(): void {
    this.#socket.close(1000);
    this.#socket.terminate();
  }

  #receive(data: Buffer, binary: boolean): void {
    if (this.#isFlooding) return;
    this.#bytes += data.length;
    const most = this.pending ? PENDING : ACCEPTED;
    if (this.#bytes > most.bytes || this.#lines > most.lines) {
      this.#isFlooding = true;
      this.#socket.pause();
      return;
    }
    if (!binary) {
      this.close();
      return;
    }
    let bytes = this.#rest === undefined ? data : Buffer.concat([this.#rest, data]);
    for (let end = bytes.indexOf(LINE_END); end !== -1; end = bytes.indexOf(LINE_END)) {
      this.#lines += 1;
      this.#handleLine(bytes.subarray(0, end).toString());
      bytes = bytes.subarray(end + 1);
    }
    // The remainder is copied, because a slice would keep the whole message in memory.
    this.#rest = bytes.length === 0 ? undefined : Buffer.from(bytes);
    if (bytes.length > liveConnections.TUNNEL_LINE_MAX) this.close();
  }

  /** Handles a line of an agent. Keep-alives have no effect, and unknown commands of newer agents are ignored. */
  #handleLine(line: string): void {
    const dial = failedDial(line);
    if (dial === null) this.close();
    else if (dial !== undefined) this.#events.failed(this, dial);
  }
}

/**
 * Returns the id of the connection in a line that reports a failed pickup. Returns undefined for any other line, and
 * null if the line is not JSON.
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
