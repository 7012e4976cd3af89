import { spawn } from "node:child_process";
import { readSync } from "node:fs";
import { constants } from "node:os";
import { basename } from "node:path";
import type { Duplex, Readable, Writable } from "node:stream";
import pty from "@lydell/node-pty";
import type { ServerChannel } from "ssh2";

/** Size, kind and modes of a client's terminal. */
export interface TerminalKind {
  readonly cols: number;
  readonly rows: number;
  /** What TERM says. */
  readonly term: string;
  /** Arguments of `stty` that set the modes. */
  readonly modes: readonly string[];
}

/** What is to be run for a client. */
export interface ProgramOptions {
  readonly shell: string;
  /** Left out: the shell itself, as at a login. */
  readonly command: string | undefined;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface Ending {
  /** The exit status; undefined where a signal ended it. */
  readonly code: number | undefined;
  /** The signal's name, such as `SIGTERM`. */
  readonly signal: string | undefined;
}

/** Is told of a program's end. */
export type Ended = (ending: Ending, passed: Promise<unknown>) => void;

/** A program that runs for a client, in a process group of its own. */
export interface Program {
  /** Sends a signal to the group; one that has ended is left alone. */
  kill(signal: NodeJS.Signals): void;
  /** Tells the size of the client's terminal; without one it has no effect. */
  resize(cols: number, rows: number): void;
  /** Ends the group, by force if it does not go. */
  hangUp(): void;
}

/** How long programs have to end after a hang-up, in milliseconds. */
const HANG_UP = 2_000;
/** How often a program whose output nobody takes is looked at, in milliseconds. */
const LOOK = 50;

/** Exit status where there is no such shell or folder. */
const NOT_FOUND = 127;

/** Names of signals by their numbers. */
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** A text as a word of the shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** True while there is a process of that id, or of that group if the id is negative. */
function exists(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch {
    return false;
  }
}

class ProcessGroup implements Omit<Program, "resize"> {
  readonly #id: number;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  /** @param id of the process that leads it */
  constructor(id: number) {
    this.#id = id;
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.#ended && exists(-this.#id)) process.kill(-this.#id, signal);
  }

  hangUp(): void {
    if (this.#ended || this.#timer) return;
    this.kill("SIGHUP");
    this.#timer = setTimeout(() => this.kill("SIGKILL"), HANG_UP);
  }

  /** To be called at the end of its first process. After a hang-up the others go too. */
  end(): void {
    if (this.#timer && exists(-this.#id)) return;
    this.#ended = true;
    clearTimeout(this.#timer);
  }
}

/**
 * Runs a program with pipes.
 * @param ended called once it has ended; `passed` resolves when its output is passed on, and never if nobody takes it
 * @throws Error it cannot be started
 */
export function runPlainly(
  channel: ServerChannel,
  { shell, command, folder, environment }: ProgramOptions,
  ended: Ended,
): Program {
  const child = spawn(shell, command === undefined ? [] : ["-c", command], {
    // By the hyphen shells know a login.
    argv0: command === undefined ? `-${basename(shell)}` : shell,
    cwd: folder,
    env: environment,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  if (child.pid === undefined) {
    child.once("error", ({ message }) => {
      channel.stderr.write(`${message}\n`);
      channel.resume();
      ended({ code: NOT_FOUND, signal: undefined }, Promise.resolve());
    });
    return { kill() {}, resize() {}, hangUp() {} };
  }
  const group = new ProcessGroup(child.pid);
  channel.pipe(child.stdin);
  // What a program does not want to read is dropped, so that the client is not kept waiting.
  child.stdin.on("error", () => channel.resume()).on("close", () => channel.resume());
  const passed = passOutput(channel, child.stdout, child.stderr);
  child.on("close", (code, signal) => {
    group.end();
    ended({ code: code ?? undefined, signal: signal ?? undefined }, passed);
  });
  return {
    kill: (signal) => group.kill(signal),
    resize() {},
    hangUp() {
      group.hangUp();
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
}

/** What the library's type leaves out. */
interface TerminalInside {
  /** Our end of the terminal: its writes tell when there is room again. */
  readonly _socket: Duplex;
  /** Its descriptor. */
  readonly fd: number;
  /** Closes our end, by which the system hangs up on all that run in the terminal. */
  destroy(): void;
}

/**
 * What is left in a terminal that nobody writes to any more, in whose place Node reports the end: it takes a read of less
 * than it has room for as the last one, and terminals give 4 KiB at a time.
 */
function* leftIn(fd: number): Generator<Buffer> {
  for (;;) {
    const buffer = Buffer.allocUnsafe(4096);
    let length = 0;
    try {
      length = readSync(fd, buffer);
    } catch {
      // EIO: that is how a terminal ends.
    }
    if (length === 0) return;
    yield buffer.subarray(0, length);
  }
}

/**
 * Runs a program in a terminal.
 * @param ended called once it has ended; `passed` resolves when its output is passed on, and never if nobody takes it
 * @throws Error it cannot be started
 */
export function runInTerminal(
  channel: ServerChannel,
  { shell, command, folder, environment }: ProgramOptions,
  { cols, rows, term, modes }: TerminalKind,
  ended: Ended,
): Program {
  const args = command === undefined ? ["-l"] : ["-c", command];
  // The program itself must find the modes set, so a shell sets them in the terminal before it becomes the program.
  const setModes = `stty ${modes.map(quoted).join(" ")} 2>/dev/null; exec "$0" "$@"`;
  const [path, ...more] = modes.length > 0 ? ["/bin/sh", "-c", setModes, shell, ...args] : [shell, ...args];
  const run = pty.spawn(path, more, {
    name: term,
    cols,
    rows,
    cwd: folder,
    env: { ...environment, TERM: term },
    // Bytes as they are.
    encoding: null,
  });
  const inside = run as unknown as TerminalInside;
  const group = new ProcessGroup(run.pid);
  let isRunning = true;
  let isTerminalOpen = true;
  let look: NodeJS.Timeout | undefined;
  const goOn = () => {
    clearInterval(look);
    if (isTerminalOpen) run.resume();
  };
  const closeTerminal = () => {
    isTerminalOpen = false;
    clearInterval(look);
    channel.unpipe();
    channel.resume();
  };
  run.onData((output: unknown) => {
    // The library drops what is unread soon after the program's end: then it is read at once. It is little.
    if (channel.write(output as Buffer) || !exists(run.pid)) return;
    run.pause();
    clearInterval(look);
    look = setInterval(() => exists(run.pid) || goOn(), LOOK);
    channel.once("drain", goOn);
  });
  inside._socket.on("end", () => {
    for (const output of leftIn(inside.fd)) channel.write(output);
    closeTerminal();
  });
  inside._socket.on("close", closeTerminal);
  channel.pipe(inside._socket, { end: false });
  run.onExit(({ exitCode, signal }) => {
    isRunning = false;
    group.end();
    const ending = signal
      ? { code: undefined, signal: SIGNALS.get(signal) }
      : { code: exitCode, signal: undefined };
    ended(ending, new Promise<void>((resolve) => channel.write("", () => resolve())));
  });
  return {
    kill: (signal) => group.kill(signal),
    resize(width, height) {
      if (isTerminalOpen) run.resize(width, height);
    },
    hangUp() {
      if (!isRunning) return;
      closeTerminal();
      group.hangUp();
      inside.destroy();
    },
  };
}

/** The state of a waiting write, which the library keeps after the write. */
interface PendingWrite {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * Passes both outputs of a program to a client, as fast as it takes them. They share the client's window, and the library
 * loses count where both wait for it: one would be sent twice, and the other never. So they take turns.
 * @returns resolves when all is passed on; never, if the channel ends before
 */
export async function passOutput(channel: ServerChannel, stdout: Readable, stderr: Readable): Promise<void> {
  let last: Promise<void> = Promise.resolve();
  const write = (to: Writable, data: Buffer) =>
    new Promise<void>((resolve) => {
      to.write(data, () => {
        const waiting = channel as unknown as PendingWrite;
        waiting._chunk = waiting._chunkcb = waiting._chunkErr = waiting._chunkcbErr = undefined;
        resolve();
      });
    });
  const pass = async (from: Readable, to: Writable) => {
    for await (const data of from) {
      last = last.then(() => write(to, data as Buffer));
      await last;
    }
  };
  // Reading ends early at a hang-up.
  await Promise.allSettled([pass(stdout, channel), pass(stderr, channel.stderr)]);
}
