import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";

/** The output and exit code of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Environment and input of a command. */
export interface CommandOptions {
  /** The complete environment of the command. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly stdin?: string;
  /** Maximum size of each file that the command writes, in bytes. Simulates a full disk. Not supported on Windows. */
  readonly fileLimit?: number | undefined;
}

/** Returns the program and the arguments with which a Node.js program starts. */
export function nodeWith(
  args: readonly string[],
  { fileLimit }: Pick<CommandOptions, "fileLimit">,
): readonly [program: string, args: readonly string[]] {
  if (fileLimit === undefined) return [process.execPath, args];
  // POSIX counts blocks of 512 bytes.
  const script = `ulimit -f ${Math.floor(fileLimit / 512)} && exec "$@"`;
  return ["/bin/sh", ["-c", script, "sh", process.execPath, ...args]];
}

/** Runs a Node.js program with its arguments to its end. */
export async function runCommand(
  args: readonly string[],
  { stdin = "", fileLimit, ...options }: CommandOptions = {},
): Promise<CommandResult> {
  const child = spawn(...nodeWith(args, { fileLimit }), options);
  const ended = once(child, "close") as Promise<[number | null]>;
  // Ignores write errors, since a command that reads no input can end before the input is written.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

/** The streams and environment that {@link callCommand} passes to a command. */
interface CalledIo {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Runs a command's main function in this process to its end. Returns its output and exit code. */
export async function callCommand(
  main: (args: readonly string[], io: CalledIo) => Promise<number>,
  args: readonly string[],
  { env = {}, stdin = "" }: Pick<CommandOptions, "env" | "stdin"> = {},
): Promise<CommandResult> {
  const [stdout, stderr] = [new Written(), new Written()];
  const code = await main(args, { env, stdin: Readable.from([stdin]), stdout, stderr });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** A stream that collects the text written to it. */
class Written extends Writable {
  readonly #chunks: string[] = [];

  constructor() {
    super({ decodeStrings: false });
  }

  get text(): string {
    return this.#chunks.join("");
  }

  override _write(chunk: string | Uint8Array, _encoding: string, done: () => void): void {
    this.#chunks.push(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8"));
    done();
  }
}

/** Returns the environment without variables of these prefixes, since such variables would change a test's result. */
export function environmentWithout(...prefixes: readonly string[]): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !prefixes.some((prefix) => entry[0].startsWith(prefix)),
  );
  return Object.fromEntries(entries);
}
