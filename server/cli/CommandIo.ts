import type { Readable, Writable } from "node:stream";
import type { ReadStream } from "node:tty";

/** The environment and the streams of a command; `process` has all of them. */
export interface CommandIo {
  readonly env: NodeJS.ProcessEnv;
  /** A terminal, a pipe or a file. */
  readonly stdin: ReadStream | (Readable & { readonly isTTY?: false });
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Writes a line to stdout. */
export const print = (io: CommandIo, line: string): void => void io.stdout.write(`${line}\n`);
