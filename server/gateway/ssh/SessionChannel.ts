import type { Client, ClientChannel, PseudoTtyInfo, PseudoTtyOptions, ServerChannel, Session } from "ssh2";
import type { OutputStream } from "../../features/sessions/addEntries.ts";
import { type EventData, type TerminalSize, unreachableReason } from "../protocol.ts";
import { ignoreErrors, passOn, passOutput, sendSignal, takeLateRequests, write } from "./bounds.ts";
import type { DeviceLogin } from "./DeviceLogin.ts";
import { type ProgramRequest, type Transfer, transferOf } from "./transfers.ts";

/** Environment variables that a session may set, and characters of each. */
const VARIABLES = 50;
const VARIABLE_MAX = 4096;
/** Exit status where the device could not run anything. */
const FAILED = 255;
/** Signals that SSH has names for (RFC 4254, section 6.10). The library throws at any other name. */
const SIGNALS = new Set("ABRT ALRM FPE HUP ILL INT KILL PIPE QUIT SEGV TERM USR1 USR2".split(" "));
/** Signals that wait until the device has opened the channel. */
const EARLY_SIGNALS = 16;
/** Size of what is recorded without a terminal. */
const USUAL_SIZE: TerminalSize = { width: 80, height: 24 };

/** The channels of a connection, as far as one of them needs the others. */
export interface ConnectionChannels {
  readonly login: DeviceLogin;
  /** The connection to the device. */
  readonly device: Promise<Client>;
  /** Whether a client may set an environment variable. */
  allows(variable: string): boolean;
  add(channel: ServerChannel): void;
  /** A channel is a shell in a terminal. */
  addTerminal(channel: ServerChannel): void;
  /** Calls a function once at the end of a channel, or of all of them. */
  atEnd(channel: ServerChannel, call: () => void): void;
  /** Something has happened on a seat. */
  note(seat: number, type: string, data: EventData): void;
  /** Sets the type of the session from its first request. Later calls have no effect. */
  describe(type: string, term: string | undefined): void;
  /** Lets the client wait while its device has not read what it caused. */
  spare(device: Client): void;
}

/** A session channel of a client, and what it becomes at the device. */
export class SessionChannel {
  readonly #session: Session;
  readonly #seat: number;
  readonly #channels: ConnectionChannels;
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
  constructor(session: Session, seat: number, channels: ConnectionChannels, release: () => void) {
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
      if (this.#far !== undefined) this.#sendToDevice((far) => sendSignal(far, name));
      else if (this.#earlySignals.length < EARLY_SIGNALS) this.#earlySignals.push(name);
      accept?.();
    });
    // Accepted at once: a client with nothing to send ends its side right after, and could not be accepted then.
    session.on("shell", (accept) => this.#run(accept(), { request: "shell" }));
    session.on("exec", (accept, _reject, { command }) => this.#run(accept(), { request: "exec", command }));
    session.on("subsystem", (accept, reject, { name }) => {
      if (name === "sftp") this.#run(accept(), { request: "subsystem", name });
      else this.#refuse(reject, `the subsystem ${name}`);
    });
    session.on("auth-agent", (_accept, reject) => this.#refuse(reject, "agent forwarding"));
    session.on("x11", (_accept, reject) => this.#refuse(reject, "X11 forwarding"));
  }

  /** @param reject undefined if the client wants no answer */
  #refuse(reject: (() => void) | undefined, what: string): void {
    this.#channels.login.logRefusal(`the gateway does not support ${what}`);
    reject?.();
  }

  #resize(size: { cols: number; rows: number; width: number; height: number }): void {
    const { cols: columns, rows, width, height } = size;
    this.#channels.note(this.#seat, "window-change", { columns, rows, width, height });
    this.#terminal = this.#terminal && { ...this.#terminal, ...size };
    // Agents never answer again when the size changes before they have begun: until then it waits.
    this.#sendToDevice((far) => far.setWindow(rows, columns, height, width));
  }

  #sendToDevice(send: (far: ClientChannel) => void): void {
    if (this.#far === undefined) return;
    send(this.#far);
    void this.#channels.device.then(
      (device) => this.#channels.spare(device),
      () => {},
    );
  }

  #run(near: ServerChannel | undefined, wanted: ProgramRequest): void {
    if (near === undefined) return;
    this.#near = near;
    this.#isOpening = true;
    this.#channels.add(near);
    near.pause();
    const { request, ...data } = wanted;
    this.#channels.note(this.#seat, request, data);
    const kind = wanted.request === "subsystem" ? wanted.name : wanted.request === "exec" ? "exec" : "term";
    this.#channels.describe(kind, this.#term);
    // Opening throws where the device has hung up, until that is noticed.
    this.#channels.device
      .then((device) => {
        this.#open(device, near, wanted);
        this.#channels.spare(device);
      })
      .catch((error: unknown) => {
        this.#isOpening = false;
        this.#free();
        fail(near, unreachableReason(error));
      });
  }

  get #term(): string | undefined {
    return (this.#terminal as { readonly term?: string } | undefined)?.term;
  }

  #open(device: Client, near: ServerChannel, wanted: ProgramRequest): void {
    const requested = this.#terminal;
    // Joined within the callback: a short command has ended by the next turn of the event loop.
    const opened = (error: Error | undefined, far: ClientChannel) => {
      this.#isOpening = false;
      this.#free();
      if (error) {
        this.#channels.login.logRefusal(`the device refuses the ${wanted.request}: ${error.message}`);
        fail(near, `The device refuses the ${wanted.request}`);
        return;
      }
      const now = this.#terminal;
      if (now && now !== requested) far.setWindow(now.rows, now.cols, now.height, now.width);
      this.#join(near, far, wanted);
    };
    const pty = requested as PseudoTtyOptions | undefined;
    const env = this.#environment;
    if (wanted.request === "shell") device.shell(pty ?? false, { env }, opened);
    else if (wanted.request === "exec") device.exec(wanted.command, { env, ...(pty && { pty }) }, opened);
    else device.subsys(wanted.name, opened);
  }

  #join(near: ServerChannel, far: ClientChannel, wanted: ProgramRequest): void {
    this.#far = far;
    const { admitted } = this.#channels.login;
    ignoreErrors(far);
    if (!near.writable) {
      far.close();
      return;
    }
    for (const name of this.#earlySignals) sendSignal(far, name);
    if (wanted.request === "shell" && this.#terminal) {
      const { announcement } = admitted.device;
      if (announcement !== "") near.write(announcement);
      this.#channels.addTerminal(near);
    }
    // The gateway records a terminal also if it runs a transfer. A subsystem has no terminal.
    const hasTerminal = this.#terminal !== undefined && wanted.request !== "subsystem";
    const transfer = hasTerminal ? undefined : transferOf(wanted);
    const count = { to_device: 0, from_device: 0 };
    const isRecorded = this.#isRecorded(wanted, hasTerminal, transfer);
    void passOn(near, (data) => {
      count.to_device += data.length;
      return write(far, data);
    }).then(() => far.end());
    const note = async (stream: OutputStream, output: Buffer) => {
      if (stream === "stdout") count.from_device += output.length;
      if (isRecorded) await this.#record(stream, output);
    };
    if (transfer) {
      this.#channels.atEnd(near, () =>
        this.#channels.note(this.#seat, "transfer", { ...transfer, ...count }),
      );
    }
    let hasExited = false;
    far.once("exit", (code: number | null, signal?: string, core?: unknown, text?: string) => {
      hasExited = true;
      this.#channels.note(this.#seat, "exit-status", { status: code ?? FAILED, ...(signal && { signal }) });
      const isKnown = SIGNALS.has(signal?.replace(/^SIG/, "") ?? "");
      if (code === null && signal && isKnown) near.exit(signal, Boolean(core), text ?? "");
      // Agents send 2^32 - 1 of what a signal has killed.
      else near.exit(Math.min(code ?? FAILED, FAILED));
    });
    // The exit status may arrive after the last output.
    const closed = new Promise((resolve) => far.on("close", resolve));
    void Promise.all([passOutput(near, far, far.stderr, note), closed]).then(() => {
      // Agents report no status of SFTP, and scp counts that as a failure.
      if (wanted.request === "subsystem" && !hasExited && !this.#channels.login.hasEnded) near.exit(0);
      near.end();
    });
    near.on("close", () => far.close());
  }

  #isRecorded({ request }: ProgramRequest, hasTerminal: boolean, transfer: Transfer | undefined): boolean {
    switch (this.#channels.login.admitted.device.recording) {
      case "none":
        return false;
      case "terminals":
        return hasTerminal;
      case "default":
        return transfer === undefined;
      case "all":
        // The bytes of SFTP are no output that a player could show.
        return request !== "subsystem";
    }
  }

  /** Records output: where the recording cannot keep up, the device waits. */
  #record(stream: OutputStream, output: Buffer): Promise<void> {
    const { cols, rows } = this.#terminal ?? {};
    const size = cols && rows ? { width: cols, height: rows } : USUAL_SIZE;
    return this.#channels.login.recorder.record(this.#seat, stream, output, size);
  }
}

/** Tells a client that what it asked for cannot be had. */
export function fail(near: ServerChannel, reason: string): void {
  if (!near.writable || near.stderr.writableEnded) return;
  near.stderr.write(`${reason}\r\n`);
  near.exit(FAILED);
  near.end();
}
