import { constants } from "node:os";
import type { Connection, ServerChannel, Session } from "ssh2";
import { allowForwarding } from "./forward.ts";
import {
  type Ended,
  type Ending,
  type Program,
  type ProgramOptions,
  quoted,
  runInTerminal,
  runPlainly,
  type TerminalKind,
} from "./programs.ts";
import { FileServer } from "./sftp.ts";
import { sttyArguments } from "./terminalModes.ts";

/** Writes a line to the log. */
export type Log = (level: "info" | "warn" | "error", message: string, facts?: object) => void;

/** The user that runs the programs of all logins, and the settings for these programs. */
export interface ChannelOptions {
  readonly user: { readonly name: string; readonly home: string; readonly shell: string };
  readonly allowForwarding: boolean;
  /** Path of the device's SFTP server program; undefined if the agent serves files itself. */
  readonly sftpServer: string | undefined;
  readonly log: Log;
}

interface LoggedIn {
  readonly client: Connection;
  /** The login name that the client used. */
  readonly login: string;
  /** Name of the device. Programs read it from the variable `GATEHOUSE_HOST`. */
  readonly device: string;
}

/** Maximum number of open session channels of a connection. */
const CHANNELS_MOST = 64;
/** Variables that a client may set. A name that ends with `*` matches all names with that prefix. */
const VARIABLES = ["LANG", "LC_*", "TERM", "COLORTERM", "TZ"];
const VARIABLES_MOST = 50;
const VARIABLE_MAX = 4096;
/** Signals that a client may send. */
const ACCEPTED = new Set(["INT", "TERM", "KILL", "HUP", "QUIT", "USR1", "USR2"]);
/** Signals that SSH can report as the cause of a program's exit (RFC 4254, section 6.10). */
const REPORTED = new Set("ABRT ALRM FPE HUP ILL INT KILL PIPE QUIT SEGV TERM USR1 USR2".split(" "));
/** Maximum number of columns or rows of a terminal. */
const SIZE_MAX = 65_535;
/** Exit status that the client receives if the agent cannot start the program. */
const FAILED = 126;

const mayBeSet = (variable: string): boolean =>
  VARIABLES.some((name) => (name.endsWith("*") ? variable.startsWith(name.slice(0, -1)) : variable === name));

/** Returns a valid terminal size. Clients send 0 for an unknown size: replaces 0 with 80 columns or 24 rows. */
const sizeOf = ({ cols, rows }: { readonly cols: number; readonly rows: number }) => ({
  cols: Math.min(cols || 80, SIZE_MAX),
  rows: Math.min(rows || 24, SIZE_MAX),
});

/** Serves the channels of a client until it disconnects. */
export function serveChannels(loggedIn: LoggedIn, options: ChannelOptions): void {
  const { client } = loggedIn;
  const channels = new Set<SessionChannel>();
  client.on("session", (accept, reject) => {
    if (channels.size >= CHANNELS_MOST) {
      reject();
      return;
    }
    const session = accept();
    const channel = new SessionChannel(session, loggedIn, options);
    channels.add(channel);
    session.on("close", () => {
      channels.delete(channel);
      channel.hangUp();
    });
  });
  // If the connection fails, the SSH library emits no events for its channels, so this handler ends their programs.
  client.on("close", () => {
    for (const channel of channels) channel.hangUp();
  });
  if (options.allowForwarding) allowForwarding(client);
}

type Kind = "shell" | "exec" | "sftp";

/** A session channel: a shell, a command, or SFTP. */
class SessionChannel {
  readonly #options: ChannelOptions;
  readonly #facts: { readonly login: string };
  readonly #environment: Record<string, string>;
  #terminal: TerminalKind | undefined;
  #program: Program | undefined;

  constructor(session: Session, { login, device }: LoggedIn, options: ChannelOptions) {
    this.#options = options;
    this.#facts = { login };
    const { user } = options;
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

  /** Ends the channel's program. */
  hangUp(): void {
    this.#program?.hangUp();
  }

  #takeRequests(session: Session): void {
    // By default, the SSH library rejects all requests that arrive after the client's EOF, including signals. This
    // handler makes the library accept these requests.
    session.on("eof", () => {
      (session as { _ending?: boolean })._ending = false;
    });
    let variables = 0;
    session.on("env", (accept, reject, { key, val }) => {
      variables += 1;
      if (!mayBeSet(key) || variables > VARIABLES_MOST || val.length > VARIABLE_MAX) {
        reject?.();
        return;
      }
      this.#environment[key] = val;
      accept?.();
    });
    session.on("pty", (accept, _reject, requested) => {
      const { term, modes } = requested as unknown as { readonly term?: string; readonly modes: Buffer };
      this.#terminal = { ...sizeOf(requested), term: term || "xterm", modes: sttyArguments(modes) };
      accept?.();
    });
    session.on("window-change", (accept, _reject, requested) => {
      const size = sizeOf(requested);
      if (this.#terminal) this.#terminal = { ...this.#terminal, ...size };
      this.#program?.resize(size.cols, size.rows);
      accept?.();
    });
    session.on("signal", (accept, reject, { name }) => {
      if (!ACCEPTED.has(name)) {
        reject?.();
        return;
      }
      this.#program?.kill(`SIG${name}` as NodeJS.Signals);
      accept?.();
    });
    session.on("shell", (accept) => this.#run(accept(), "shell", undefined));
    session.on("exec", (accept, _reject, { command }) => this.#run(accept(), "exec", command));
    session.on("subsystem", (accept, reject, { name }) => {
      const { sftpServer } = this.#options;
      if (name !== "sftp") reject();
      else if (sftpServer === undefined) this.#serveFiles(accept());
      else this.#run(accept(), "sftp", `exec ${quoted(sftpServer)}`);
    });
  }

  #run(channel: ServerChannel | undefined, kind: Kind, command: string | undefined): void {
    if (channel === undefined) return;
    const { user, log } = this.#options;
    const program: ProgramOptions = {
      shell: user.shell,
      command,
      folder: user.home,
      environment: this.#environment,
    };
    const ended: Ended = (ending, passed) => {
      passed.then(() => sendEnding(channel, ending));
      this.#logEnd(kind, ending);
    };
    channel.on("error", () => this.hangUp());
    try {
      // SFTP runs without a terminal, since a terminal would change the bytes of files.
      const terminal = kind === "sftp" ? undefined : this.#terminal;
      this.#program = terminal
        ? runInTerminal(channel, program, terminal, ended)
        : runPlainly(channel, program, ended);
    } catch (error) {
      log("error", "cannot start a program", { ...this.#facts, reason: (error as Error).message });
      channel.stderr.write(`Cannot start the command: ${(error as Error).message}\n`);
      channel.resume();
      ended({ code: FAILED, signal: undefined }, Promise.resolve());
    }
  }

  #serveFiles(channel: ServerChannel | undefined): void {
    if (channel === undefined) return;
    const server = new FileServer(channel, this.#options.user.home);
    this.#program = { kill() {}, resize() {}, hangUp: () => server.close() };
    channel.on("error", () => this.hangUp());
    server.serve().then(
      () => this.#filesEnded(channel, { code: 0, signal: undefined }),
      (error: Error) => {
        this.#options.log("warn", "a client violated the SFTP protocol", {
          ...this.#facts,
          reason: error.message,
        });
        channel.resume();
        this.#filesEnded(channel, { code: FAILED, signal: undefined });
      },
    );
  }

  #filesEnded(channel: ServerChannel, ending: Ending): void {
    sendEnding(channel, ending);
    this.#logEnd("sftp", ending);
  }

  #logEnd(kind: Kind, ending: Ending): void {
    this.#options.log("info", "session ended", { ...this.#facts, kind, ...ending });
  }
}

/** Sends the exit status or signal of a program to the client, and closes the channel. */
function sendEnding(channel: ServerChannel, { code, signal = "" }: Ending): void {
  const name = signal.replace(/^SIG/, "");
  if (code !== undefined) channel.exit(code);
  else if (REPORTED.has(name)) channel.exit(name);
  // SSH cannot report this signal. As in a shell, the exit status is then 128 plus the number of the signal.
  else channel.exit(128 + (constants.signals[signal as NodeJS.Signals] ?? 0));
  channel.end();
}
