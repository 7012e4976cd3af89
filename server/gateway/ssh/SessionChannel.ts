import type { Client, ClientChannel, PseudoTtyInfo, PseudoTtyOptions, ServerChannel, Session } from "ssh2";
import type { OutputStream } from "../../features/sessions/addEntries.ts";
import { type EventData, failureReason, type TerminalSize } from "../protocol.ts";
import { ignoreErrors, passOn, passOutput, sendSignal, takeLateRequests, write } from "./bounds.ts";
import type { DeviceLogin } from "./DeviceLogin.ts";
import { type ProgramRequest, type Transfer, transferOf } from "./transfers.ts";

/**
 * Maximum number of environment variables that a session may set, and maximum number of characters in the value of a
 * variable.
 */
const VARIABLES = 50;
const VARIABLE_MAX = 4096;
/** Exit status that the client receives if the device could not run the program. */
const FAILED = 255;
/** Signals that SSH defines (RFC 4254, section 6.10). The library throws for any other signal name. */
const SIGNALS = new Set("ABRT ALRM FPE HUP ILL INT KILL PIPE QUIT SEGV TERM USR1 USR2".split(" "));
/** Maximum number of signals that are stored until the device has opened the channel. */
const EARLY_SIGNALS = 16;
/** Terminal size in the recording of a program that runs without a terminal. */
const USUAL_SIZE: TerminalSize = { width: 80, height: 24 };

/** The functions of a client's connection that its session channels use. */
export interface ConnectionChannels {
  readonly login: DeviceLogin;
  /** The SSH client that is connected to the device. */
  readonly device: Promise<Client>;
  /** Returns true if a client may set the environment variable. */
  allows(variable: string): boolean;
  add(channel: ServerChannel): void;
  /** Registers a channel that is a shell in a terminal. */
  addTerminal(channel: ServerChannel): void;
  /** Registers a function that is called once: when the channel ends, or when all channels are ended together. */
  atEnd(channel: ServerChannel, call: () => void): void;
  /** Adds an event of a channel to the session. `seat` is the channel's seat: its number in the session. */
  note(seat: number, type: string, data: EventData): void;
  /** Sets the session's type. The client's first request determines the type; later calls have no effect. */
  describe(type: string, term: string | undefined): void;
  /** Backpressure: pauses reading from the client until the device has read all data that the gateway sent to it. */
  spare(device: Client): void;
}

/** A client's session channel, connected to a channel of the device. */
export class SessionChannel {
  readonly #session: Session;
  readonly #seat: number;
  readonly #channels: ConnectionChannels;
  readonly #environment: Record<string, string> = {};
  #terminal: PseudoTtyInfo | undefined;
  #near: ServerChannel | undefined;
  #far: ClientChannel | undefined;
  /** Signals that the client sent before the device opened the channel. */
  readonly #earlySignals: string[] = [];
  /** True while the gateway waits for the device to open the channel. */
  #isOpening = false;
  #isClosed = false;
  readonly #release: () => void;

  /** @param release called when the channel no longer counts toward the maximum number of open channels */
  constructor(session: Session, seat: number, channels: ConnectionChannels, release: () => void) {
    this.#session = session;
    this.#seat = seat;
    this.#channels = channels;
    this.#release = release;
    session.once("close", () => {
      this.#isClosed = true;
      // The client's channel closes only after all its data has been read. If the device has not opened its channel, no
      // code reads the data, so discard the data here.
      if (this.#far === undefined) this.#near?.resume();
      this.#releaseIfDone();
    });
    this.#takeRequests();
  }

  /** Stops counting the channel as open if the client has closed it and the device is not opening a channel for it. */
  #releaseIfDone(): void {
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
      // `accept` is undefined if the client does not want a response.
      accept?.();
    });
    session.on("env", (accept, reject, { key, val }) => {
      const isWithinLimits = Object.keys(this.#environment).length < VARIABLES && val.length <= VARIABLE_MAX;
      if (!isWithinLimits || !this.#channels.allows(key)) {
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
    // Accept the requests below before the device has responded. A client without input sends EOF immediately after its
    // request, and the library cannot accept a request after EOF.
    session.on("shell", (accept) => this.#run(accept(), { request: "shell" }));
    session.on("exec", (accept, _reject, { command }) => this.#run(accept(), { request: "exec", command }));
    session.on("subsystem", (accept, reject, { name }) => {
      if (name === "sftp") this.#run(accept(), { request: "subsystem", name });
      else this.#refuse(reject, `the subsystem ${name}`);
    });
    session.on("auth-agent", (_accept, reject) => this.#refuse(reject, "agent forwarding"));
    session.on("x11", (_accept, reject) => this.#refuse(reject, "X11 forwarding"));
  }

  /**
   * Refuses a request, and logs the refusal.
   * @param reject undefined if the client does not want a response
   */
  #refuse(reject: (() => void) | undefined, what: string): void {
    this.#channels.login.logRefusal(`the gateway does not support ${what}`);
    reject?.();
  }

  #resize(size: { cols: number; rows: number; width: number; height: number }): void {
    const { cols: columns, rows, width, height } = size;
    this.#channels.note(this.#seat, "window-change", { columns, rows, width, height });
    this.#terminal = this.#terminal && { ...this.#terminal, ...size };
    // Send the size only after the program has started. An agent stops responding if the size changes earlier.
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

  #run(near: ServerChannel | undefined, program: ProgramRequest): void {
    if (near === undefined) return;
    this.#near = near;
    this.#isOpening = true;
    this.#channels.add(near);
    near.pause();
    const { request, ...data } = program;
    this.#channels.note(this.#seat, request, data);
    const kind =
      program.request === "subsystem" ? program.name : program.request === "exec" ? "exec" : "term";
    this.#channels.describe(kind, this.#term);
    // `#open` throws if the device has disconnected but the library has not detected the disconnect yet.
    this.#channels.device
      .then((device) => {
        this.#open(device, near, program);
        this.#channels.spare(device);
      })
      .catch((error: unknown) => {
        this.#isOpening = false;
        this.#releaseIfDone();
        fail(near, failureReason(error));
      });
  }

  get #term(): string | undefined {
    return (this.#terminal as { readonly term?: string } | undefined)?.term;
  }

  #open(device: Client, near: ServerChannel, program: ProgramRequest): void {
    const requested = this.#terminal;
    // Connect the channels within this callback, because a short command ends before the next turn of the event loop.
    const opened = (error: Error | undefined, far: ClientChannel) => {
      this.#isOpening = false;
      this.#releaseIfDone();
      if (error) {
        this.#channels.login.logRefusal(`the device refuses the ${program.request}: ${error.message}`);
        fail(near, `The device refuses the ${program.request}`);
        return;
      }
      const now = this.#terminal;
      if (now && now !== requested) far.setWindow(now.rows, now.cols, now.height, now.width);
      this.#join(near, far, program);
    };
    const pty = requested as PseudoTtyOptions | undefined;
    const env = this.#environment;
    if (program.request === "shell") device.shell(pty ?? false, { env }, opened);
    else if (program.request === "exec") device.exec(program.command, { env, ...(pty && { pty }) }, opened);
    else device.subsys(program.name, opened);
  }

  #join(near: ServerChannel, far: ClientChannel, program: ProgramRequest): void {
    this.#far = far;
    const { admitted } = this.#channels.login;
    ignoreErrors(far);
    if (!near.writable) {
      far.close();
      return;
    }
    for (const name of this.#earlySignals) sendSignal(far, name);
    if (program.request === "shell" && this.#terminal) {
      const { announcement } = admitted.device;
      if (announcement !== "") near.write(announcement);
      this.#channels.addTerminal(near);
    }
    // The gateway records a terminal even if it runs a program that transfers files. A subsystem has no terminal.
    const hasTerminal = this.#terminal !== undefined && program.request !== "subsystem";
    const transfer = hasTerminal ? undefined : transferOf(program);
    const count = { to_device: 0, from_device: 0 };
    const isRecorded = this.#isRecorded(program, hasTerminal, transfer);
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
      // If a signal has killed the program, agents send the exit status 2^32 - 1. So reduce larger values to `FAILED`.
      else near.exit(Math.min(code ?? FAILED, FAILED));
    });
    // The exit status may arrive after the last output. So end the client's channel only after the device's channel is
    // closed.
    const closed = new Promise((resolve) => far.on("close", resolve));
    void Promise.all([passOutput(near, far, far.stderr, note), closed]).then(() => {
      // Agents report no status for SFTP, and scp treats a missing status as a failure.
      if (program.request === "subsystem" && !hasExited && !this.#channels.login.hasEnded) near.exit(0);
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
        // SFTP is not recorded, because a player cannot show its bytes.
        return request !== "subsystem";
    }
  }

  /** Records output. If the recorder is slower than the device, the device waits. */
  #record(stream: OutputStream, output: Buffer): Promise<void> {
    const { cols, rows } = this.#terminal ?? {};
    const size = cols && rows ? { width: cols, height: rows } : USUAL_SIZE;
    return this.#channels.login.recorder.record(this.#seat, stream, output, size);
  }
}

/** Shows the client why a request failed, and ends the channel with a failure status. */
export function fail(near: ServerChannel, reason: string): void {
  if (!near.writable || near.stderr.writableEnded) return;
  near.stderr.write(`${reason}\r\n`);
  near.exit(FAILED);
  near.end();
}
