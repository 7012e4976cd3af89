import { type Duplex, Transform } from "node:stream";
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
import type { SshSettings } from "../../services.ts";
import type { DeviceLogin } from "../logins/DeviceLogin.ts";
import type { TerminalSize } from "../logins/SessionLedger.ts";
import { UnreachableError } from "../tunnels/Tunnels.ts";
import { passOutput } from "./passOutput.ts";

/** Channels that a connection may have open at a time. */
const MOST = 64;
/** Environment variables that a session may set, and characters of each. */
const VARIABLES = 50;
const VARIABLE_MAX = 4096;
/** Exit status where the device could not run anything. */
const FAILED = 255;
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
  readonly #open = new Set<ServerChannel>();
  #seats = 0;
  #described = false;

  constructor(client: Connection, login: DeviceLogin, device: Promise<Client>, settings: SshSettings) {
    this.#login = login;
    this.#device = device;
    this.#settings = settings;
    client.on("session", (accept, reject) => {
      if (this.#open.size >= MOST) reject();
      else new Seat(accept(), this.#takeSeat(), this);
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

  /** Ends all channels, and says why. */
  end(reason: string): void {
    for (const channel of this.#open) fail(channel, reason);
  }

  add(channel: ServerChannel): void {
    this.#open.add(channel);
    channel.on("close", () => this.#open.delete(channel));
  }

  /** What the session is, by the first that its client wants. */
  describe(type: string, term: string | undefined): void {
    if (this.#described) return;
    this.#described = true;
    this.#login.ledger.describe({ type, ...(term && { term }) });
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
    const opened = (error: Error | undefined, far: ClientChannel) => {
      if (error) {
        reject();
        return;
      }
      const near = accept();
      this.add(near);
      this.describe("forward", undefined);
      this.#login.ledger.event(this.#takeSeat(), "direct-tcpip", {
        ...{ dest_addr: destIP, dest_port: destPort, origin_addr: srcIP, origin_port: srcPort },
      });
      join(near, far);
    };
    try {
      // Throws where the device has hung up, until that is noticed.
      (await this.#device).forwardOut(srcIP, srcPort, destIP, destPort, opened);
    } catch {
      reject();
    }
  }
}

/**
 * Joins two connections until both have ended. The client's end is not passed on before the device's: existing agents
 * close both directions at the end of one, and what they still had to say is lost.
 */
function join(near: ServerChannel, far: Duplex): void {
  near.pipe(far, { end: false });
  far.pipe(near);
  far.on("close", () => near.end());
  near.on("close", () => far.destroy());
  for (const side of [near, far]) side.on("error", () => {});
}

/** A session channel of a client, and what it becomes at the device. */
class Seat {
  readonly #session: Session;
  readonly #seat: number;
  readonly #channels: Channels;
  readonly #environment: Record<string, string> = {};
  #terminal: PseudoTtyInfo | undefined;
  #far: ClientChannel | undefined;

  constructor(session: Session, seat: number, channels: Channels) {
    this.#session = session;
    this.#seat = seat;
    this.#channels = channels;
    this.#takeRequests();
  }

  #takeRequests(): void {
    const { ledger } = this.#channels.login;
    const session = this.#session;
    session.on("pty", (accept, _reject, terminal) => {
      this.#terminal = terminal;
      const { cols: columns, rows, width, height, modes, ...rest } = terminal;
      const { term } = rest as { readonly term?: string };
      ledger.event(this.#seat, "pty-req", { term: term ?? "", columns, rows, width, height });
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
    session.on("signal", (accept, _reject, { name }) => {
      ledger.event(this.#seat, "signal", { name });
      this.#far?.signal(name);
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
    this.#channels.login.ledger.event(this.#seat, "window-change", { columns, rows, width, height });
    this.#terminal = this.#terminal && { ...this.#terminal, ...size };
    // Agents never answer again when the size changes before they have begun: until then it waits.
    this.#far?.setWindow(rows, columns, height, width);
  }

  #run(near: ServerChannel | undefined, asked: Asked): void {
    if (near === undefined) return;
    this.#channels.add(near);
    near.on("error", () => {});
    near.pause();
    const { ledger } = this.#channels.login;
    const { request, ...data } = asked;
    ledger.event(this.#seat, request, data);
    const kind = asked.request === "subsystem" ? asked.name : asked.request === "exec" ? "exec" : "term";
    this.#channels.describe(kind, this.#term);
    // Opening throws where the device has hung up, until that is noticed.
    this.#channels.device
      .then((device) => this.#open(device, near, asked))
      .catch((error: unknown) => {
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
    far.on("error", () => {});
    if (!near.writable) {
      far.close();
      return;
    }
    if (asked.request === "shell" && this.#terminal) {
      const text = admitted.device.namespace.connectionAnnouncement.trimEnd();
      if (text !== "") near.write(`${text.replaceAll(/\r?\n/g, "\r\n")}\r\n`);
    }
    const recorded = asked.request !== "subsystem" && ledger.recording;
    const output = recorded ? far.pipe(this.#recorder()) : far;
    near.pipe(far);
    near.resume();
    far.on("exit", (code: number | null, signal?: string, core?: unknown, text?: string) => {
      ledger.event(this.#seat, "exit-status", { status: code ?? FAILED, ...(signal && { signal }) });
      if (code === null && signal) near.exit(signal, Boolean(core), text ?? "");
      // Agents send 2^32 - 1 of what a signal has killed.
      else near.exit(Math.min(code ?? FAILED, FAILED));
    });
    // How it ended may be told after the last of its output.
    const closed = new Promise((resolve) => far.on("close", resolve));
    void Promise.all([passOutput(near, output, far.stderr), closed]).then(() => near.end());
    near.on("close", () => far.close());
  }

  /** Passes output on as it is recorded: where the recording cannot keep up, the device waits. */
  #recorder(): Transform {
    const { ledger } = this.#channels.login;
    return new Transform({
      transform: (output: Buffer, _encoding, done) => {
        const { cols, rows } = this.#terminal ?? {};
        const size = cols && rows ? { width: cols, height: rows } : USUAL_SIZE;
        ledger.record(this.#seat, output, size).then(() => done(null, output), done);
      },
    });
  }
}

/** Tells a client that what it asked for cannot be had. */
function fail(near: ServerChannel, reason: string): void {
  near.stderr.write(`${reason}\r\n`);
  near.exit(FAILED);
  near.end();
}
