import type {
  Client,
  ClientChannel,
  Connection,
  PseudoTtyInfo,
  PseudoTtyOptions,
  ServerChannel,
  Session,
  TcpipRequestInfo,
} from "ssh2";
import type { OutputStream } from "../../features/sessions/addEntries.ts";
import type { SshSettings } from "../../services.ts";
import { type EventData, type TerminalSize, UnreachableError } from "../protocol.ts";
import {
  type Brake,
  ignoreErrors,
  isCongested,
  passOn,
  relieved,
  sendSignal,
  takeLateRequests,
  write,
} from "./bounds.ts";
import type { DeviceLogin } from "./DeviceLogin.ts";
import { passOutput } from "./passOutput.ts";

/** Channels that a connection may have open at a time. */
const MOST = 64;
/** Environment variables that a session may set, and characters of each. */
const VARIABLES = 50;
const VARIABLE_MAX = 4096;
/** How long a forwarded connection may take to pass on what is left when its client has closed it, in milliseconds. */
const LINGER = 5_000;
/** Exit status where the device could not run anything. */
const FAILED = 255;
/** Signals that SSH has names for (RFC 4254, section 6.10). The library throws at any other name. */
const SIGNALS = new Set("ABRT ALRM FPE HUP ILL INT KILL PIPE QUIT SEGV TERM USR1 USR2".split(" "));
/** Signals that wait until the device has opened the channel. */
const EARLY_SIGNALS = 16;
/** Size of what is recorded without a terminal. */
const USUAL_SIZE: TerminalSize = { width: 80, height: 24 };

/** What a client asks the device to run. */
type Asked =
  | { readonly request: "shell" }
  | { readonly request: "exec"; readonly command: string }
  | { readonly request: "subsystem"; readonly name: string };

/** The channels of a client, each joined with one of the same kind at the device. */
export class Channels {
  readonly #login: DeviceLogin;
  readonly #device: Promise<Client>;
  readonly #settings: SshSettings;
  readonly #brake: Brake;
  readonly #open = new Set<ServerChannel>();
  /** Those among them that are shells in terminals. */
  readonly #terminals = new Set<ServerChannel>();
  /** Channels that the client has opened and not closed, also those on which it has requested nothing. */
  #count = 0;
  #seats = 0;
  #described = false;
  #hasEnded = false;

  /** @param brake lets the client wait, where what it causes cannot be kept as fast */
  constructor(
    client: Connection,
    login: DeviceLogin,
    device: Promise<Client>,
    settings: SshSettings,
    brake: Brake,
  ) {
    this.#login = login;
    this.#device = device;
    this.#settings = settings;
    this.#brake = brake;
    client.on("session", (accept, reject) => {
      const release = this.#occupy();
      if (release === undefined) reject();
      else new Seat(accept(), this.#takeSeat(), this, release);
    });
    if (settings.forwarding) {
      client.on("tcpip", (accept, reject, to) => void this.#forward(accept, reject, to));
    }
  }

  get login(): DeviceLogin {
    return this.#login;
  }

  /** The connection to the device. */
  get device(): Promise<Client> {
    return this.#device;
  }

  /**
   * Ends all channels with a reason, and refuses new ones.
   * @returns how many were open
   */
  end(reason: string): number {
    this.#hasEnded = true;
    const open = [...this.#open];
    for (const channel of open) fail(channel, reason);
    return open.length;
  }

  /** Shows a text in the terminals. */
  notify(text: string): void {
    for (const terminal of this.#terminals) {
      if (terminal.writable) terminal.write(`\r\n${text}\r\n`);
    }
  }

  /** A channel is a shell in a terminal. */
  addTerminal(channel: ServerChannel): void {
    this.#terminals.add(channel);
    channel.on("close", () => this.#terminals.delete(channel));
  }

  /** Bytes of all channels that wait to be passed on. */
  get waiting(): number {
    let sum = 0;
    for (const channel of this.#open) sum += channel.readableLength + channel.writableLength;
    return sum;
  }

  /** Something has happened on a seat. */
  note(seat: number, type: string, data: EventData): void {
    const { ledger } = this.#login;
    ledger.event(seat, type, data);
    if (ledger.isFull) this.#brake.hold("ledger", () => ledger.room());
  }

  /** Lets the client wait while its device has not read what it caused. */
  spare(device: Client): void {
    if (isCongested(device)) this.#brake.hold("device", () => relieved(device));
  }

  /** Counts a channel, until the function that it returns is called; undefined: there are too many. */
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

  /** What the session is, by the first that its client wants. */
  describe(type: string, term: string | undefined): void {
    if (this.#described) return;
    this.#described = true;
    this.#login.ledger.describe(type, term);
  }

  /** Whether a client may set a variable. */
  allows(variable: string): boolean {
    return this.#settings.environment.some((name) =>
      name.endsWith("*") ? variable.startsWith(name.slice(0, -1)) : variable === name,
    );
  }

  #takeSeat(): number {
    this.#seats += 1;
    return this.#seats - 1;
  }

  async #forward(accept: () => ServerChannel, reject: () => void, to: TcpipRequestInfo): Promise<void> {
    const { srcIP, srcPort, destIP, destPort } = to;
    const release = this.#occupy();
    if (release === undefined) {
      reject();
      return;
    }
    const refuse = () => {
      release();
      reject();
    };
    const opened = (error: Error | undefined, far: ClientChannel) => {
      if (error) {
        refuse();
        return;
      }
      const near = accept();
      near.on("close", release);
      this.add(near);
      this.describe("forward", undefined);
      this.note(this.#takeSeat(), "direct-tcpip", {
        ...{ dest_addr: destIP, dest_port: destPort, origin_addr: srcIP, origin_port: srcPort },
      });
      join(near, far);
    };
    try {
      // Throws where the device has hung up, until that is noticed.
      const device = await this.#device;
      device.forwardOut(srcIP, srcPort, destIP, destPort, opened);
      this.spare(device);
    } catch {
      refuse();
    }
  }
}

/**
 * Joins two connections until both have ended. The client's end is not passed on before the device's: existing agents
 * close both directions at the end of one, and what they still had to say is lost.
 */
function join(near: ServerChannel, far: ClientChannel): void {
  ignoreErrors(far);
  void passOn(near, (data) => write(far, data));
  void passOn(far, (data) => write(near, data)).then(() => near.end());
  near.on("close", () => far.destroy());
  // Nothing is read of a client's channel while the device takes nothing, so that its end is not seen.
  near.once("finish", () => setTimeout(() => far.destroy(), LINGER).unref());
}

/** A session channel of a client, and what it becomes at the device. */
class Seat {
  readonly #session: Session;
  readonly #seat: number;
  readonly #channels: Channels;
  readonly #environment: Record<string, string> = {};
  #terminal: PseudoTtyInfo | undefined;
  #near: ServerChannel | undefined;
  #far: ClientChannel | undefined;
  /** Signals that the client has sent before the device has opened the channel. */
  readonly #earlySignals: string[] = [];
  /** Whether the device has still to open the channel. */
  #isOpening = false;
  #isClosed = false;
  readonly #release: () => void;

  /** @param release called once the channel counts no more */
  constructor(session: Session, seat: number, channels: Channels, release: () => void) {
    this.#session = session;
    this.#seat = seat;
    this.#channels = channels;
    this.#release = release;
    session.once("close", () => {
      this.#isClosed = true;
      // A channel closes only when all of it is read, and nothing is passed on before the device has opened its own.
      if (this.#far === undefined) this.#near?.resume();
      this.#free();
    });
    this.#takeRequests();
  }

  /** The channel counts until its client has closed it and the device has answered. */
  #free(): void {
    if (this.#isClosed && !this.#isOpening) this.#release();
  }

  #takeRequests(): void {
    const session = this.#session;
    takeLateRequests(session);
    session.on("pty", (accept, _reject, terminal) => {
      this.#terminal = terminal;
      const { cols: columns, rows, width, height, modes, ...rest } = terminal;
      const { term } = rest as { readonly term?: string };
      this.#channels.note(this.#seat, "pty-req", { term: term ?? "", columns, rows, width, height });
      // Left out where the client wants no answer.
      accept?.();
    });
    session.on("env", (accept, reject, { key, val }) => {
      const room = Object.keys(this.#environment).length < VARIABLES && val.length <= VARIABLE_MAX;
      if (!room || !this.#channels.allows(key)) {
        reject?.();
        return;
      }
      this.#environment[key] = val;
      accept?.();
    });
    session.on("window-change", (accept, _reject, size) => {
      this.#resize(size);
      accept?.();
    });
    session.on("signal", (accept, reject, { name }) => {
      this.#channels.note(this.#seat, "signal", { name });
      if (!SIGNALS.has(name)) {
        reject?.();
        return;
      }
      if (this.#far !== undefined) this.#tellDevice((far) => sendSignal(far, name));
      else if (this.#earlySignals.length < EARLY_SIGNALS) this.#earlySignals.push(name);
      accept?.();
    });
    // Accepted at once: a client with nothing to send ends its side right after, and could not be accepted then.
    session.on("shell", (accept) => this.#run(accept(), { request: "shell" }));
    session.on("exec", (accept, _reject, { command }) => this.#run(accept(), { request: "exec", command }));
    session.on("subsystem", (accept, reject, { name }) => {
      if (name === "sftp") this.#run(accept(), { request: "subsystem", name });
      else reject();
    });
  }

  #resize(size: { cols: number; rows: number; width: number; height: number }): void {
    const { cols: columns, rows, width, height } = size;
    this.#channels.note(this.#seat, "window-change", { columns, rows, width, height });
    this.#terminal = this.#terminal && { ...this.#terminal, ...size };
    // Agents never answer again when the size changes before they have begun: until then it waits.
    this.#tellDevice((far) => far.setWindow(rows, columns, height, width));
  }

  #tellDevice(tell: (far: ClientChannel) => void): void {
    if (this.#far === undefined) return;
    tell(this.#far);
    void this.#channels.device.then(
      (device) => this.#channels.spare(device),
      () => {},
    );
  }

  #run(near: ServerChannel | undefined, asked: Asked): void {
    if (near === undefined) return;
    this.#near = near;
    this.#isOpening = true;
    this.#channels.add(near);
    near.pause();
    const { request, ...data } = asked;
    this.#channels.note(this.#seat, request, data);
    const kind = asked.request === "subsystem" ? asked.name : asked.request === "exec" ? "exec" : "term";
    this.#channels.describe(kind, this.#term);
    // Opening throws where the device has hung up, until that is noticed.
    this.#channels.device
      .then((device) => {
        this.#open(device, near, asked);
        this.#channels.spare(device);
      })
      .catch((error: unknown) => {
        this.#isOpening = false;
        this.#free();
        // The operator reads other errors in the log.
        const reason = error instanceof UnreachableError ? error.message : "cannot be reached";
        fail(near, `The device ${reason}`);
      });
  }

  get #term(): string | undefined {
    return (this.#terminal as { readonly term?: string } | undefined)?.term;
  }

  #open(device: Client, near: ServerChannel, asked: Asked): void {
    const asTold = this.#terminal;
    // Joined within the callback: a short command has ended by the next turn of the event loop.
    const opened = (error: Error | undefined, far: ClientChannel) => {
      this.#isOpening = false;
      this.#free();
      if (error) {
        fail(near, `The device refuses the ${asked.request}`);
        return;
      }
      const now = this.#terminal;
      if (now && now !== asTold) far.setWindow(now.rows, now.cols, now.height, now.width);
      this.#join(near, far, asked);
    };
    const pty = asTold as PseudoTtyOptions | undefined;
    const env = this.#environment;
    if (asked.request === "shell") device.shell(pty ?? false, { env }, opened);
    else if (asked.request === "exec") device.exec(asked.command, { env, ...(pty && { pty }) }, opened);
    else device.subsys(asked.name, opened);
  }

  #join(near: ServerChannel, far: ClientChannel, asked: Asked): void {
    this.#far = far;
    const { ledger, admitted } = this.#channels.login;
    ignoreErrors(far);
    if (!near.writable) {
      far.close();
      return;
    }
    for (const name of this.#earlySignals) sendSignal(far, name);
    if (asked.request === "shell" && this.#terminal) {
      const { announcement } = admitted.device;
      if (announcement !== "") near.write(announcement);
      this.#channels.addTerminal(near);
    }
    const record =
      asked.request === "subsystem" || !ledger.recording
        ? undefined
        : (stream: OutputStream, output: Buffer) => this.#record(stream, output);
    void passOn(near, (data) => write(far, data)).then(() => far.end());
    let hasExited = false;
    far.once("exit", (code: number | null, signal?: string, core?: unknown, text?: string) => {
      hasExited = true;
      this.#channels.note(this.#seat, "exit-status", { status: code ?? FAILED, ...(signal && { signal }) });
      const isKnown = SIGNALS.has(signal?.replace(/^SIG/, "") ?? "");
      if (code === null && signal && isKnown) near.exit(signal, Boolean(core), text ?? "");
      // Agents send 2^32 - 1 of what a signal has killed.
      else near.exit(Math.min(code ?? FAILED, FAILED));
    });
    // How it ended may be told after the last of its output.
    const closed = new Promise((resolve) => far.on("close", resolve));
    void Promise.all([passOutput(near, far, far.stderr, record), closed]).then(() => {
      // Agents report no status of SFTP, and scp counts that as a failure.
      if (asked.request === "subsystem" && !hasExited && !this.#channels.login.hasEnded) near.exit(0);
      near.end();
    });
    near.on("close", () => far.close());
  }

  /** Records output: where the recording cannot keep up, the device waits. */
  #record(stream: OutputStream, output: Buffer): Promise<void> {
    const { cols, rows } = this.#terminal ?? {};
    const size = cols && rows ? { width: cols, height: rows } : USUAL_SIZE;
    return this.#channels.login.ledger.record(this.#seat, stream, output, size);
  }
}

/** Tells a client that what it asked for cannot be had. */
function fail(near: ServerChannel, reason: string): void {
  if (!near.writable || near.stderr.writableEnded) return;
  near.stderr.write(`${reason}\r\n`);
  near.exit(FAILED);
  near.end();
}
