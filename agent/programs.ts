import { spawn } from "node:child_process";
import { readSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { basename } from "node:path";
import { type Duplex, type Readable, Writable } from "node:stream";
import pty from "@lydell/node-pty";
import type { ServerChannel } from "ssh2";

/** The size, type and modes of a client's terminal. */
export interface TerminalKind {
  readonly cols: number;
  readonly rows: number;
  /** The terminal's type, the value of `TERM`. */
  readonly term: string;
  /** Arguments of `stty` that set the terminal's modes. */
  readonly modes: readonly string[];
}

/** A program to run for a client. */
export interface ProgramOptions {
  readonly shell: string;
  /** The shell command; undefined for a login shell. */
  readonly command: string | undefined;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** The end of a program. */
export interface Ending {
  /** The exit status; undefined if a signal ended the program. */
  readonly code: number | undefined;
  /** The signal's name, such as `SIGTERM`. */
  readonly signal: string | undefined;
}

/** A callback for the exit of a program. `passed` resolves when the agent has sent all output to the client. */
export type Ended = (ending: Ending, passed: Promise<unknown>) => void;

/** A running program of a client, in a separate process group. */
export interface Program {
  /** Sends a signal to the process group. Has no effect if the process group has ended. */
  kill(signal: NodeJS.Signals): void;
  /** Sets the size of the client's terminal. Has no effect without a terminal. */
  resize(cols: number, rows: number): void;
  /** Sends SIGHUP to the process group. Kills the process group if it does not end soon. */
  hangUp(): void;
}

/** Time, in milliseconds, that programs have to exit after SIGHUP. After this time, the agent kills them. */
const HANG_UP = 2_000;
/** Interval, in milliseconds, at which the agent checks whether a program with paused output is still running. */
const CHECK_INTERVAL = 50;

/** Interval between attempts to write input to a terminal whose buffer is full, in milliseconds. */
const WRITE_INTERVAL = 10;

/** Exit status if the shell or the home folder does not exist. */
const NOT_FOUND = 127;

/** Names of signals, by their numbers. */
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** Quotes a string as a single word for the shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns true if the process exists. A negative id is the id of a process group. */
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

  /** @param id process id of the group's leader */
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

  /**
   * Call this method when the group's first process has exited. If `hangUp` was called and other processes of the group
   * are still running, the SIGKILL timer continues. Otherwise, this object sends no more signals to the group.
   */
  end(): void {
    if (this.#timer && exists(-this.#id)) return;
    this.#ended = true;
    clearTimeout(this.#timer);
  }
}

/**
 * Runs a program with pipes instead of a terminal.
 * @param ended called when the program has exited. Its argument `passed` resolves when the client has received all
 *   output, and never resolves if the client does not read the output.
 * @throws Error the program cannot be started
 */
export function runPlainly(
  channel: ServerChannel,
  { shell, command, folder, environment }: ProgramOptions,
  ended: Ended,
): Program {
  const child = spawn(shell, command === undefined ? [] : ["-c", command], {
    // A shell acts as a login shell if its name begins with a hyphen.
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
  // After the program closes its input, further input from the client is discarded, so that the client does not wait.
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

/** Fields of the pseudo-terminal library's terminal object that are missing in its public type. */
interface TerminalInside {
  /** The controlling end of the terminal, as a stream that reports when it accepts more data. */
  readonly _socket: Duplex;
  /** File descriptor of the controlling end. */
  readonly fd: number;
  /** Closes the controlling end. The system then sends SIGHUP to the processes in the terminal. */
  destroy(): void;
}

/**
 * Yields the output that remains after the last program has closed the terminal. Node.js reports the end too early: it
 * stops after a read that does not fill its buffer, although a terminal returns at most 4 KiB per read.
 */
function* remainingOutput(fd: number): Generator<Buffer> {
  for (;;) {
    const buffer = Buffer.allocUnsafe(4096);
    let length = 0;
    try {
      length = readSync(fd, buffer);
    } catch {
      // The error EIO marks the end of a terminal's output.
    }
    if (length === 0) return;
    yield buffer.subarray(0, length);
  }
}

/**
 * Returns a stream that writes a client's input to a terminal. It replaces the terminal's own stream. If the terminal's
 * buffer is full, a write to that stream blocks the whole agent until the program reads its input. Discards input after
 * the terminal is closed.
 */
const terminalInput = ({ fd, _socket }: TerminalInside, isOpen: () => boolean): Writable =>
  new Writable({
    write(input: Buffer, _encoding, done) {
      const writeRest = (rest: Buffer) => {
        let written = rest.length;
        try {
          if (isOpen() && !_socket.destroyed) written = writeSync(fd, rest);
        } catch (error) {
          // All other errors occur because the program has closed the terminal.
          if ((error as NodeJS.ErrnoException).code === "EAGAIN") written = 0;
        }
        if (written === rest.length) done();
        else setTimeout(writeRest, WRITE_INTERVAL, rest.subarray(written));
      };
      writeRest(input);
    },
  });

/**
 * Runs a program in a terminal.
 * @param ended called when the program has exited. Its argument `passed` resolves when all output has been sent to the
 *   client, and never resolves if the client does not read the output.
 * @throws Error the program cannot be started
 */
export function runInTerminal(
  channel: ServerChannel,
  { shell, command, folder, environment }: ProgramOptions,
  { cols, rows, term, modes }: TerminalKind,
  ended: Ended,
): Program {
  const args = command === undefined ? ["-l"] : ["-c", command];
  // The terminal modes must be set before the program starts. So a shell sets the modes and then replaces itself with
  // the program.
  const setModes = `stty ${modes.map(quoted).join(" ")} 2>/dev/null; exec "$0" "$@"`;
  const [path, ...more] = modes.length > 0 ? ["/bin/sh", "-c", setModes, shell, ...args] : [shell, ...args];
  const run = pty.spawn(path, more, {
    name: term,
    cols,
    rows,
    cwd: folder,
    env: { ...environment, TERM: term },
    // With the encoding `null`, the library delivers the output as bytes instead of strings.
    encoding: null,
  });
  const inside = run as unknown as TerminalInside;
  const group = new ProcessGroup(run.pid);
  let isRunning = true;
  let isTerminalOpen = true;
  let check: NodeJS.Timeout | undefined;
  const resume = () => {
    clearInterval(check);
    if (isTerminalOpen) run.resume();
  };
  const closeTerminal = () => {
    isTerminalOpen = false;
    clearInterval(check);
    channel.unpipe();
    channel.resume();
  };
  run.onData((output: unknown) => {
    // Soon after the program exits, the pseudo-terminal library discards unread output. So the agent reads the
    // remaining output immediately after the exit, even if the client is slow.
    if (channel.write(output as Buffer) || !exists(run.pid)) return;
    run.pause();
    clearInterval(check);
    check = setInterval(() => exists(run.pid) || resume(), CHECK_INTERVAL);
    channel.once("drain", resume);
  });
  inside._socket.on("end", () => {
    for (const output of remainingOutput(inside.fd)) channel.write(output);
    closeTerminal();
  });
  inside._socket.on("close", closeTerminal);
  channel.pipe(
    terminalInput(inside, () => isTerminalOpen),
    { end: false },
  );
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
      // After a read error, the file descriptor is already closed before the event "close". `resize` would then throw.
      if (isTerminalOpen && !inside._socket.destroyed) run.resize(width, height);
    },
    hangUp() {
      if (!isRunning) return;
      closeTerminal();
      group.hangUp();
      inside.destroy();
    },
  };
}

/**
 * Fields in which the SSH library stores a write while it waits for space in the client's receive window. The library
 * does not clear these fields after the write.
 */
interface PendingWrite {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * Sends the stdout and stderr of a program to a client at the client's speed. Both streams share the client's receive
 * window. If both streams have a write that waits for the window, the library sends one of the writes twice and never
 * sends the other. So this function writes to only one stream at a time.
 * @returns a promise that resolves when all output has been sent, and never resolves if the channel closes earlier
 */
async function passOutput(channel: ServerChannel, stdout: Readable, stderr: Readable): Promise<void> {
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
  // `allSettled` ignores the errors of both streams, since reading the output fails after SIGHUP.
  await Promise.allSettled([pass(stdout, channel), pass(stderr, channel.stderr)]);
}
