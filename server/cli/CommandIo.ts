import type { Readable, Writable } from "node:stream";
import type { ReadStream } from "node:tty";

/** The environment and the streams of a command. Node's `process` satisfies this interface. */
export interface CommandIo {
  readonly env: NodeJS.ProcessEnv;
  /** The standard input of a command: a terminal, a pipe or a file. */
  readonly stdin: ReadStream | (Readable & { readonly isTTY?: false });
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Writes a line to stdout. */
export const print = (io: CommandIo, line: string): void => void io.stdout.write(`${line}\n`);

/** Writes a warning to stderr. */
export const warn = (io: CommandIo, text: string): void =>
  void io.stderr.write(`gatehouse-server: Warning: ${text}\n`);

/** Error codes of writes to a pipe, socket or terminal whose reader has disconnected. */
const READER_LOST = ["EPIPE", "ECONNRESET", "EIO"];

function onError(error: NodeJS.ErrnoException): void {
  if (!READER_LOST.includes(error.code ?? "")) throw error;
}

/** Lets a command finish even if the reader of its output has exited, as with `| head`. */
export function surviveLostReaders({ stdout, stderr }: CommandIo): void {
  for (const stream of [stdout, stderr]) {
    if (!stream.listeners("error").includes(onError)) stream.on("error", onError);
  }
}
