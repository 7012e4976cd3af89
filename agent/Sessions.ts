import { type ChildProcess, spawn } from "node:child_process";
import { connect } from "node:net";
import { constants } from "node:os";
import pty, { type IPty } from "@lydell/node-pty";
import type { Connection, PseudoTtyInfo, ServerChannel, Session } from "ssh2";
import { serveSftp } from "./sftp.ts";

/** Writes a line of the log. */
export type Log = (level: "info" | "warn" | "error", message: string, facts?: object) => void;

/** What logins run as. */
export interface SessionOptions {
  readonly user: { readonly name: string; readonly home: string; readonly shell: string };
  /** Name of the device, which programs find as GATEHOUSE_HOST. */
  readonly device: string;
  readonly allowForwarding: boolean;
  readonly log: Log;
}

/** Variables that a login may set; a name that ends with `*` stands for all that begin so. */
const VARIABLES = ["LANG", "LC_*", "TZ", "COLORTERM"];
const VARIABLES_MOST = 50;
/** How long programs have to end after a hang-up, in milliseconds. */
const HANG_UP = 2_000;

const mayBeSet = (variable: string): boolean =>
  VARIABLES.some((name) => (name.endsWith("*") ? variable.startsWith(name.slice(0, -1)) : variable === name));

/** Names of signals by their numbers. */
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** The channels of a client that is logged in. */
export class Sessions {
  constructor(client: Connection, options: SessionOptions) {
    client.on("session", (accept) => new Seat(accept(), options));
    if (!options.allowForwarding) return;
    client.on("tcpip", (accept, reject, { destIP, destPort }) => {
      const far = connect({ host: destIP, port: destPort, allowHalfOpen: true });
      far.once("error", () => reject());
      far.once("connect", () => {
        const near = accept();
        far.pipe(near);
        near.pipe(far);
        near.on("error", () => far.destroy()).on("close", () => far.destroy());
        far.on("error", () => near.close());
      });
    });
  }
}

/** One session channel: a shell, a command, or files. */
class Seat {
  readonly #options: SessionOptions;
  readonly #environment: NodeJS.ProcessEnv;
  #terminal: PseudoTtyInfo | undefined;
  #pty: IPty | undefined;
  #child: ChildProcess | undefined;

  constructor(session: Session, options: SessionOptions) {
    this.#options = options;
    const { user, device } = options;
    const { PATH = "/usr/local/bin:/usr/bin:/bin", LANG } = process.env;
    this.#environment = {
      PATH,
      ...(LANG && { LANG }),
      HOME: user.home,
      SHELL: user.shell,
      USER: user.name,
      LOGNAME: user.name,
      GATEHOUSE_HOST: device,
    };
    this.#takeRequests(session);
  }

  #takeRequests(session: Session): void {
    let variables = 0;
    session.on("env", (accept, reject, { key, val }) => {
      variables += 1;
      if (!mayBeSet(key) || variables > VARIABLES_MOST) {
        reject?.();
        return;
      }
      this.#environment[key] = val;
      accept?.();
    });
    session.on("pty", (accept, _reject, terminal) => {
      this.#terminal = terminal;
      accept?.();
    });
    session.on("window-change", (accept, _reject, size) => {
      if (this.#terminal) this.#terminal = { ...this.#terminal, ...size };
      this.#pty?.resize(size.cols || 80, size.rows || 24);
      accept?.();
    });
    session.on("signal", (accept, _reject, { name }) => {
      this.#kill(`SIG${name}` as NodeJS.Signals);
      accept?.();
    });
    session.on("shell", (accept) => this.#run(accept(), ["-l"]));
    session.on("exec", (accept, _reject, { command }) => this.#run(accept(), ["-c", command]));
    session.on("sftp", (accept) => serveSftp(accept(), this.#options.user.home));
  }

  #run(channel: ServerChannel | undefined, args: string[]): void {
    if (channel === undefined) return;
    channel.on("error", () => this.#hangUp());
    channel.on("close", () => this.#hangUp());
    if (this.#terminal) this.#runInTerminal(channel, this.#terminal, args);
    else this.#runPlainly(channel, args);
  }

  #runInTerminal(channel: ServerChannel, terminal: PseudoTtyInfo, args: string[]): void {
    const { user } = this.#options;
    const { cols, rows, term } = terminal as PseudoTtyInfo & { readonly term?: string };
    const name = term || "xterm";
    const run = pty.spawn(user.shell, args, {
      name,
      cols: cols || 80,
      rows: rows || 24,
      cwd: user.home,
      env: { ...this.#environment, TERM: name },
      // Bytes as they are.
      encoding: null,
    });
    this.#pty = run;
    // Buffers, without an encoding.
    run.onData((output: unknown) => {
      if (channel.write(output as Buffer)) return;
      run.pause();
      channel.once("drain", () => run.resume());
    });
    channel.on("data", (input: Buffer) => run.write(input as unknown as string));
    run.onExit(({ exitCode, signal }) =>
      this.#ended(channel, exitCode, signal ? SIGNALS.get(signal) : undefined),
    );
  }

  #runPlainly(channel: ServerChannel, args: string[]): void {
    const { user } = this.#options;
    const child = spawn(user.shell, args[0] === "-l" ? [] : args, {
      cwd: user.home,
      env: this.#environment,
      // A process group of its own, which is killed as a whole.
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    channel.pipe(child.stdin);
    child.stdin.on("error", () => {});
    child.stdout.pipe(channel, { end: false });
    child.stderr.pipe(channel.stderr, { end: false });
    child.on("error", (error) => {
      this.#options.log("error", "a login's shell cannot be run", { reason: error.message });
      this.#ended(channel, 127, undefined);
    });
    child.on("close", (code, signal) => this.#ended(channel, code ?? 0, signal ?? undefined));
  }

  #ended(channel: ServerChannel, code: number, signal: string | undefined): void {
    this.#pty = undefined;
    this.#child = undefined;
    if (!channel.writable) return;
    if (signal === undefined) channel.exit(code);
    else channel.exit(signal.replace(/^SIG/, ""));
    channel.end();
  }

  #kill(signal: NodeJS.Signals): void {
    try {
      this.#pty?.kill(signal);
      if (this.#child?.pid) process.kill(-this.#child.pid, signal);
    } catch {
      // It has ended meanwhile, or the client named a signal that the system has not.
    }
  }

  /** What is run for a client ends with its channel. */
  #hangUp(): void {
    this.#kill("SIGHUP");
    setTimeout(() => this.#kill("SIGKILL"), HANG_UP).unref();
  }
}
