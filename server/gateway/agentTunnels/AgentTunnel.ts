import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Transport, TunnelLink } from "./Transport.ts";

/**
 * Maximum number of bytes and messages that an agent may send between two checks of its tunnel, for pending and for
 * accepted devices. The data of SSH connections does not count. Agents send a keep-alive every 30 seconds, and at most
 * a few messages for each connection. Agents of pending devices receive no user connections.
 */
const PENDING = { bytes: 16 * 1024, messages: 50 };
const ACCEPTED = { bytes: 1024 * 1024, messages: 5_000 };

/**
 * Length, in bytes, below which a message always counts toward the limit. Such a message is shorter than any complete
 * frame or line.
 */
const SHORT = 12;
/**
 * Maximum number of unsent bytes at a check. The limit is several yamux windows, so only an agent that does not read
 * exceeds it.
 */
const UNSENT_MAX = 16 * 1024 * 1024;

/** The device of a tunnel. */
export interface TunneledDevice {
  readonly uid: string;
  readonly tenantId: string;
  /** The network from which the device's agent connects. */
  readonly network: string;
}

/** A request of a device's agent to open a tunnel. */
export interface TunnelRequest extends TunneledDevice {
  readonly transport: Transport["version"];
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
  /** The agent answered a ping, so the device is online. */
  alive(tunnel: AgentTunnel): void;
  /** The tunnel was closed because the agent violated the protocol by sending the described message. */
  violated(tunnel: AgentTunnel, violation: string): void;
  closed(tunnel: AgentTunnel): void;
}

/**
 * The tunnel of a device's agent: an open WebSocket over which the service connects to the device. Ten thousand tunnels
 * may be open, so a tunnel uses little memory and has no timers.
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
  readonly #transport: Transport;
  #answered = true;
  /** Number of bytes and messages counted since the last check. */
  #bytes = 0;
  #messages = 0;
  #isFlooding = false;

  /** @param newTransport creates the transport that the agent requested */
  constructor(
    socket: WebSocket,
    device: TunneledDevice,
    start: TunnelStart,
    newTransport: (link: TunnelLink) => Transport,
    events: TunnelEvents,
  ) {
    this.#socket = socket;
    this.device = device;
    this.pending = start.pending;
    this.proven = start.proven;
    this.openedAt = start.openedAt;
    this.#transport = newTransport({
      send: (bytes, sent) => socket.send(bytes, sent),
      count: (bytes, messages) => this.#count(bytes, messages),
      fail: (violation) => this.#fail(violation, events),
    });
    socket.on("message", (data, binary) => {
      if (this.#isFlooding || this.isClosed) return;
      const { length } = data as Buffer;
      // Handling a message takes time, so messages without a complete frame count too.
      if (length < SHORT && !this.#count(length, 1)) return;
      if (binary) this.#transport.receive(data as Buffer);
      else this.#fail("a text message", events);
    });
    // The WebSocket library answers each ping that it reads. If an agent floods the service, further pings are not read
    // and need no answer.
    socket.on("ping", (data) => this.#count(data.length, 1));
    socket.on("pong", (data) => {
      if (!this.#count(data.length, 1) || this.#answered) return;
      this.#answered = true;
      events.alive(this);
    });
    // Errors are ignored, because the event `close` follows every error.
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#transport.closed();
      events.closed(this);
    });
    this.check();
  }

  /** Version of the tunnel's transport. */
  get transport(): Transport["version"] {
    return this.#transport.version;
  }

  /**
   * Sends a ping. Ends the tunnel instead if the agent has not answered since the last call, has sent too much, or does
   * not read. The holder of the tunnel calls this method every 25 seconds, because agents disconnect 35 seconds after
   * the last keep-alive. If an agent has sent too much, its tunnel ends only at the next call, because the agent
   * reconnects immediately.
   */
  check(): void {
    this.#bytes = 0;
    this.#messages = 0;
    const isFull = this.#socket.bufferedAmount > UNSENT_MAX;
    if (!this.#answered || this.#isFlooding || isFull) {
      this.#socket.terminate();
      return;
    }
    this.#answered = false;
    this.#transport.keepAlive();
    this.#socket.ping();
  }

  /**
   * Connects to the SSH server of the agent; see {@link Transport.connect}.
   * @throws UnreachableError the agent does not answer
   */
  connect(session: string): Promise<Duplex> {
    return this.#transport.connect(session);
  }

  /** Whether the tunnel is closed or closing. */
  get isClosed(): boolean {
    return this.#socket.readyState !== this.#socket.OPEN;
  }

  /** Closes the tunnel. Agents reconnect immediately. */
  close(): void {
    this.#socket.close(1000);
    this.#socket.terminate();
  }

  #count(bytes: number, messages: number): boolean {
    this.#bytes += bytes;
    this.#messages += messages;
    const most = this.pending ? PENDING : ACCEPTED;
    if (this.#bytes <= most.bytes && this.#messages <= most.messages) return true;
    this.#isFlooding = true;
    this.#socket.pause();
    return false;
  }

  #fail(violation: string, events: TunnelEvents): void {
    events.violated(this, violation);
    this.close();
  }
}
