import { randomBytes } from "node:crypto";
import { liveConnections } from "@gatehouse-access/sdk/contract";
import type { WebSocket } from "ws";

/** Bytes with which a line of JSON ends. */
const LINE_END = 0x0a;

/**
 * What an agent may send between two checks, in bytes and in lines. Agents send a keep-alive every 30 seconds, and a line
 * for each connection that they could not pick up, which they are not asked for before they are accepted.
 */
const PENDING = { bytes: 16 * 1024, lines: 50 };
const ACCEPTED = { bytes: 1024 * 1024, lines: 5_000 };

/** A device as its tunnel knows it. */
export interface TunneledDevice {
  readonly uid: string;
  readonly tenantId: string;
  /** The network that its agent connects from. */
  readonly network: string;
}

/** A device whose agent asks for a tunnel. */
export interface TunnelRequest extends TunneledDevice {
  /** Whether the agent has proven the device's private key. */
  readonly proven: boolean;
  /** Address of the agent, and id of its request: for the audit trail. */
  readonly address: string;
  readonly requestId: string;
}

/** What a tunnel begins with. */
interface TunnelStart {
  /** Whether the device waits to be accepted. */
  readonly pending: boolean;
  /** Whether the agent has proven the device's private key. */
  readonly proven: boolean;
  readonly openedAt: Date;
}

/** What a tunnel tells its holder. */
export interface TunnelEvents {
  /** The agent has answered a ping: the device is there. */
  alive(tunnel: AgentTunnel): void;
  /** The agent could not pick up a connection. */
  failed(tunnel: AgentTunnel, dial: string): void;
  closed(tunnel: AgentTunnel): void;
}

const KEEP_ALIVE = Buffer.from('{"command":"keep-alive"}\n');

/**
 * The tunnel of a device's agent: a WebSocket that stays open, over which the agent is told to pick up connections. Ten
 * thousands may be open, so each holds little, and has no timers of its own.
 */
export class AgentTunnel {
  readonly id = randomBytes(16).toString("hex");
  readonly device: TunneledDevice;
  readonly openedAt: Date;
  /** Whether the device waits to be accepted. */
  pending: boolean;
  /** Whether the agent has proven the device's private key. */
  proven: boolean;
  readonly #socket: WebSocket;
  readonly #events: TunnelEvents;
  /** The beginning of a line whose rest is still to come. */
  #rest: Buffer | undefined;
  #answered = true;
  /** What has come since the last check. */
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
    // A close follows every error.
    socket.on("error", () => {});
    socket.on("close", () => events.closed(this));
    this.check();
  }

  /**
   * The holder calls it every 25 seconds: agents hang up 35 seconds after the last keep-alive. It ends the tunnel of an
   * agent that has not answered since the last call, or has sent too much. A flood ends only here, because the agent
   * would reconnect at once.
   */
  check(): void {
    this.#bytes = 0;
    this.#lines = 0;
    if (!this.#answered || this.#isFlooding) {
      this.#socket.terminate();
      return;
    }
    this.#answered = false;
    // Copied to be masked or not, never changed: one buffer serves all.
    this.#socket.send(KEEP_ALIVE);
    this.#socket.ping();
  }

  /** Tells the agent to pick a connection up, at a path of the service. */
  announce(path: string): void {
    this.#socket.send(Buffer.from(`${JSON.stringify({ command: "conn-ready", connPath: path })}\n`));
  }

  /** Whether the agent has left, or is to leave. */
  get isClosed(): boolean {
    return this.#socket.readyState !== this.#socket.OPEN;
  }

  /** Closes it; agents connect again at once. */
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
      this.#obey(bytes.subarray(0, end).toString());
      bytes = bytes.subarray(end + 1);
    }
    // A copy, which does not hold the memory of the whole message.
    this.#rest = bytes.length === 0 ? undefined : Buffer.from(bytes);
    if (bytes.length > liveConnections.TUNNEL_LINE_MAX) this.close();
  }

  /** Keep-alives of agents have no effect, and commands of later agents are none of ours. */
  #obey(line: string): void {
    const dial = failedDial(line);
    if (dial === null) this.close();
    else if (dial !== undefined) this.#events.failed(this, dial);
  }
}

/** The connection that a line says was not picked up; undefined for another line, null for one that is no JSON. */
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
