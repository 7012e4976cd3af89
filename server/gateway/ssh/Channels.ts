import type { Client, ClientChannel, Connection, ServerChannel, TcpipRequestInfo } from "ssh2";
import { type EventData, failureReason } from "../protocol.ts";
import { type Brake, ignoreErrors, isCongested, passOn, relieved, softwareOf, write } from "./bounds.ts";
import type { DeviceLogin } from "./DeviceLogin.ts";
import type { ServiceClient } from "./ServiceClient.ts";
import { type ConnectionChannels, fail, SessionChannel } from "./SessionChannel.ts";

/** Maximum number of open channels of a connection. */
const MOST = 64;
/**
 * Maximum time, in milliseconds, to forward the remaining bytes of a connection after the client has closed the
 * connection.
 */
const LINGER = 5_000;

/** Reason codes of refused channels (RFC 4254, section 5.1). */
const [PROHIBITED, CONNECT_FAILED, SHORTAGE] = [1, 2, 4];
const TOO_MANY = `a connection can have at most ${MOST} open channels`;
/** Software name in the SSH identification of the project's own agent. */
const OWN_AGENT = "Gatehouse-Agent";

/**
 * Refuses a channel with a reason. The parameters are declared here, because the type definitions of the SSH library
 * lack them.
 */
type Refuse = (code?: number, text?: string) => void;

/**
 * The SSH channels of a client. Each channel is connected to a channel of the same type on the connection to the
 * device.
 */
export class Channels implements ConnectionChannels {
  readonly #login: DeviceLogin;
  readonly #device: Promise<Client>;
  readonly #service: ServiceClient;
  readonly #brake: Brake;
  readonly #open = new Set<ServerChannel>();
  /** The open channels that are shells in terminals. */
  readonly #terminals = new Set<ServerChannel>();
  /** Number of channels that the client has opened and not yet closed, including channels without a request. */
  #count = 0;
  /** Callbacks for the end of each channel or of the client's connection. */
  readonly #ends = new Set<() => void>();
  #seats = 0;
  #described = false;
  #hasEnded = false;

  /**
   * @param brake backpressure: stops reading from the client while the recorder or the device is slower than the client
   */
  constructor(
    client: Connection,
    login: DeviceLogin,
    device: Promise<Client>,
    service: ServiceClient,
    brake: Brake,
  ) {
    this.#login = login;
    this.#device = device;
    this.#service = service;
    this.#brake = brake;
    client.on("session", (accept, reject) => {
      const release = this.#occupy();
      if (release === undefined) this.#refuse(reject, SHORTAGE, TOO_MANY);
      else new SessionChannel(accept(), this.#nextSeat(), this, release);
    });
    client.on("tcpip", (accept, reject, to) => void this.#forward(accept, reject, to));
    client.on("openssh.streamlocal", (_accept, reject) =>
      this.#refuse(reject, PROHIBITED, "the gateway does not forward connections to Unix sockets"),
    );
    client.on("request", (_accept, reject, name) => {
      this.#login.logRefusal(`the gateway does not support the request ${name}`);
      reject?.();
    });
  }

  get login(): DeviceLogin {
    return this.#login;
  }

  get device(): Promise<Client> {
    return this.#device;
  }

  /**
   * Ends all channels, shows the reason, and refuses new channels.
   * @returns the number of channels that were open
   */
  end(reason: string): number {
    this.#hasEnded = true;
    const open = [...this.#open];
    for (const channel of open) fail(channel, reason);
    this.closed();
    return open.length;
  }

  /** Shows a message in all terminals. */
  notify(text: string): void {
    for (const terminal of this.#terminals) {
      if (terminal.writable) terminal.write(`\r\n${text}\r\n`);
    }
  }

  addTerminal(channel: ServerChannel): void {
    this.#terminals.add(channel);
    channel.on("close", () => this.#terminals.delete(channel));
  }

  /** Total number of bytes, on all channels, that are waiting to be forwarded. */
  get waiting(): number {
    let sum = 0;
    for (const channel of this.#open) sum += channel.readableLength + channel.writableLength;
    return sum;
  }

  note(seat: number, type: string, data: EventData): void {
    const { recorder } = this.#login;
    recorder.event(seat, type, data);
    if (recorder.isOverfull) this.#brake.hold("recorder", () => recorder.room());
  }

  spare(device: Client): void {
    if (isCongested(device)) this.#brake.hold("device", () => relieved(device));
  }

  atEnd(channel: ServerChannel, call: () => void): void {
    const end = () => {
      if (this.#ends.delete(end)) call();
    };
    this.#ends.add(end);
    channel.on("close", end);
  }

  /**
   * Ends all channels because the client has disconnected. The library emits no event for the channels when a client
   * disconnects.
   */
  closed(): void {
    for (const end of this.#ends) end();
  }

  #refuse(reject: Refuse, code: number, reason: string): void {
    this.#login.logRefusal(reason);
    reject(code, reason);
  }

  /**
   * Counts a channel as open until the returned function is called. Returns undefined if the connection has too many
   * channels.
   */
  #occupy(): (() => void) | undefined {
    if (this.#hasEnded || this.#count >= MOST) return undefined;
    this.#count += 1;
    let isOccupied = true;
    return () => {
      if (isOccupied) this.#count -= 1;
      isOccupied = false;
    };
  }

  add(channel: ServerChannel): void {
    this.#open.add(channel);
    ignoreErrors(channel);
    channel.on("close", () => this.#open.delete(channel));
  }

  describe(type: string, term: string | undefined): void {
    if (this.#described) return;
    this.#described = true;
    this.#login.recorder.describe(type, term);
  }

  allows(variable: string): boolean {
    return this.#service.start.settings.sshEnvironment.some((name) =>
      name.endsWith("*") ? variable.startsWith(name.slice(0, -1)) : variable === name,
    );
  }

  #nextSeat(): number {
    this.#seats += 1;
    return this.#seats - 1;
  }

  async #forward(accept: () => ServerChannel, reject: Refuse, to: TcpipRequestInfo): Promise<void> {
    const { srcIP, srcPort, destIP, destPort } = to;
    const { device: admitted } = this.#login.admitted;
    const prohibition = await this.#service.forwarding.prohibitionOf(admitted, destIP, destPort);
    if (prohibition !== undefined) {
      this.#refuse(reject, PROHIBITED, prohibition);
      return;
    }
    const release = this.#occupy();
    if (release === undefined) {
      this.#refuse(reject, SHORTAGE, TOO_MANY);
      return;
    }
    const refuse = (reason: string) => {
      release();
      this.#refuse(reject, CONNECT_FAILED, reason);
    };
    const opened = (error: Error | undefined, far: ClientChannel) => {
      if (error) {
        refuse(`the device did not connect to the target: ${error.message}`);
        return;
      }
      const near = accept();
      near.on("close", release);
      this.add(near);
      this.describe("forward", undefined);
      this.note(this.#nextSeat(), "direct-tcpip", {
        dest_addr: destIP,
        dest_port: destPort,
        origin_addr: srcIP,
        origin_port: srcPort,
      });
      join(near, far);
    };
    try {
      // The call throws if the device has disconnected but the library has not detected the disconnect yet.
      const device = await this.#device;
      device.forwardOut(srcIP, srcPort, destIP, destPort, opened);
      this.spare(device);
    } catch (error) {
      refuse(failureReason(error));
    }
  }
}

/**
 * Connects a client's forwarded connection to the device's connection until both connections have ended. Forwards the
 * client's EOF immediately only to the project's own agent. Agents of version 0.19 close both directions of the
 * connection when they receive EOF, so the response would be lost.
 */
function join(near: ServerChannel, far: ClientChannel): void {
  ignoreErrors(far);
  void passOn(near, (data) => write(far, data)).then(() => {
    if (softwareOf(far) === OWN_AGENT) far.end();
  });
  void passOn(far, (data) => write(near, data)).then(() => near.end());
  near.on("close", () => far.destroy());
  // While the device does not read, the gateway does not read the client's channel either. The gateway therefore does
  // not detect the end of the channel.
  near.once("finish", () => setTimeout(() => far.destroy(), LINGER).unref());
}
