import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";

/** What came of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a command runs with. */
export interface CommandOptions {
  /** All of its environment. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly stdin?: string;
  /** No file that it writes can become larger, in bytes: as on a disk without room for more. Not on Windows. */
  readonly fileLimit?: number | undefined;
}

/** What to spawn for a Node.js program with its arguments. */
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
  // A command that does not read its input may have ended before it is written.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

/** What {@link callCommand} hands to a command. */
interface CalledIo {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Runs a command by its function, in this process, to its end; it resolves with the exit code. */
export async function callCommand(
  main: (args: readonly string[], io: CalledIo) => Promise<number>,
  args: readonly string[],
  { env = {}, stdin = "" }: Pick<CommandOptions, "env" | "stdin"> = {},
): Promise<CommandResult> {
  const [stdout, stderr] = [new Written(), new Written()];
  const code = await main(args, { env, stdin: Readable.from([stdin]), stdout, stderr });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** Text that somebody wrote. */
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

/** The environment without settings whose names begin so, which would change what a test sees. */
export function environmentWithout(...prefixes: readonly string[]): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !prefixes.some((prefix) => entry[0].startsWith(prefix)),
  );
  return Object.fromEntries(entries);
}
