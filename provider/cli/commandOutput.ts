import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { GatehouseError, printedError } from "@gatehouse-access/sdk/errors";
import { EngineError, ProgramError, type Result, RunError, withoutValues } from "../engine/index.ts";
import { OutdatedPlanError } from "../plan/saved/planDifferences.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import { printable, printableLines } from "../words.ts";
import { colors, diagnosticLine, isPrintedAtEnd, resultText } from "./render.ts";

/** The streams and the environment of a command: the values of `process`, or replacements in tests. */
export interface Io {
  /** The environment variables. The engine and its programs receive only these variables. */
  readonly env: NodeJS.ProcessEnv;
  /** The standard input. Commands prompt only if this stream is a terminal. */
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
}

export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** The exit code of a command that completed and has blocking findings. */
export const BLOCKED = 2;

/** The output of a command. {@link printOutput} prints it. */
export interface CommandOutput<R extends object = object> {
  readonly result?: R;
  readonly text?: () => string | Promise<string>;
  /**
   * A large output in chunks, printed instead of `result` and `text`. Each chunk is generated only when it is printed.
   */
  readonly parts?: Iterable<string>;
  /** Exit code of the command. @default 0 */
  readonly exitCode?: number;
  /** Runs the policy tests of the project. If the tests fail, the exit code of the tests replaces {@link exitCode}. */
  readonly policyTests?: (() => Promise<CommandOutput<TestedNamespace>>) | undefined;
  readonly afterPrint?: (tests: TestedNamespace | undefined) => Promise<void>;
}

/**
 * The type of a function that wraps a command. Commander calls the wrapped command with the arguments and the flags.
 */
export type ActionOf = <Words extends unknown[]>(
  command: (io: Io, ...words: Words) => Promise<CommandOutput>,
) => (this: Pick<CommandUnknownOpts, "opts">, ...words: Words) => Promise<void>;

/**
 * Returns the output of a run. The exit code reports a finding if the run left an object on the service because another
 * stack was the last to declare it.
 */
export const runOutput = (io: Io, result: Result): CommandOutput => ({
  result: withoutValues(result),
  text: () => runText(io, result),
  ...(result.left && { exitCode: BLOCKED }),
});

const runText = ({ stdout, env }: Io, result: Result): string =>
  resultText(colors(stdout, env), withoutValues(result));

/**
 * Prints the result, then the policy tests. With `--json`, prints both as one object. If the policy tests cannot run,
 * the result is still printed.
 * @returns the exit code
 * @throws the errors of the policy tests and of {@link CommandOutput.afterPrint}
 */
export async function printOutput(
  { stdout, env }: Io,
  output: CommandOutput,
  json: boolean,
): Promise<number> {
  const { result, text, parts, exitCode = 0, policyTests, afterPrint } = output;
  const print = (printed: string) => stdout.write(`${printed}\n`);
  if (parts) await printParts(stdout, parts);
  if (text && !json) print(await text());
  let tests: CommandOutput<TestedNamespace> | undefined;
  try {
    tests = await policyTests?.();
  } finally {
    if (result && json)
      print(JSON.stringify({ ...result, ...(tests && { policyTests: tests.result }) }, null, 2));
  }
  if (tests && !json) print(`${colors(stdout, env).bold("Policy tests")}\n${await tests.text?.()}`);
  await afterPrint?.(tests?.result);
  return tests?.exitCode || exitCode;
}

async function printParts(stdout: Output, parts: Iterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(parts), stdout, { end: false });
  } catch (error) {
    // `outputFailure` reports the write errors of all commands.
    if ((error as NodeJS.ErrnoException).syscall !== "write") throw error;
  }
}

interface PrintErrorOptions {
  /** True to print the error as JSON too. @default false */
  readonly json?: boolean;
  /** True to print the call stacks of errors in the program. @default false */
  readonly verbose?: boolean;
}

/**
 * Prints the error that ends a command: its message and its code. For a run whose resources or program failed, prints
 * each error of the resources and the program instead. Does not print a plan that is incomplete because of such an
 * error. With `--json`, also prints the error as an object, with the result of the run if there is one.
 * @returns the exit code
 * @throws an error that is a bug, so that the stack trace is printed
 */
export function printError(
  io: Io,
  error: unknown,
  { json = false, verbose = false }: PrintErrorOptions = {},
): number {
  if (!(error instanceof GatehouseError)) throw error;
  const { result, isExplained = false } = error instanceof RunError ? error : {};
  const isIncomplete = isExplained || error instanceof ProgramError;
  if (json) {
    const facts = error instanceof OutdatedPlanError ? { differences: error.differences } : {};
    const shown = {
      ...(result ? withoutValues(result) : { ok: false }),
      error: { ...error.toJSON(), ...facts },
    };
    io.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
  } else if (result && result.steps.length > 0 && !(result.planned && isIncomplete)) {
    io.stdout.write(`${runText(io, result)}\n`);
  }
  const c = colors(io.stderr, io.env);
  const print = (text: string) => io.stderr.write(`${text}\n`);
  for (const diagnostic of result?.diagnostics.filter(isPrintedAtEnd) ?? [])
    print(diagnosticLine(c, diagnostic));
  // The message of a failed request contains untrusted text from the service. This message is printed on one line, so
  // that the text cannot imitate other lines of output.
  const message = (error instanceof EngineError ? printableLines : printable)(printedError(error));
  if (!isExplained) print(c.red(`error: ${message}`));
  if (verbose && error instanceof ProgramError)
    for (const stack of error.stacks) print(printableLines(stack));
  return error instanceof OutdatedPlanError ? BLOCKED : 1;
}

/** Error codes of a write to a pipe, a socket or a terminal after its reader exited. */
const READER_LOST = ["EPIPE", "ECONNRESET", "EIO"];

/**
 * The last write error of each output stream, such as the error for a full disk. Errors with a code in {@link
 * READER_LOST} are not stored.
 */
const failures = new WeakMap<Output, NodeJS.ErrnoException>();

function onError(this: Output, error: NodeJS.ErrnoException): void {
  if (!READER_LOST.includes(error.code ?? "")) failures.set(this, error);
}

/**
 * Adds error listeners to the output streams, so that a command finishes even if the reader of its output has exited,
 * as with `| head`. Without a listener, a stream error would end the process in the middle of a run. {@link
 * outputFailure} returns the write errors that have a different cause.
 */
export function surviveLostReaders({ stdout, stderr }: Io): void {
  for (const stream of [stdout, stderr]) {
    if (!stream.listeners("error").includes(onError)) stream.on("error", onError);
  }
}

/**
 * Returns the write error that made the output incomplete. Returns undefined if the output is complete or its reader
 * has exited.
 */
export async function outputFailure({ stdout }: Io): Promise<Error | undefined> {
  // Waits until the errors of all earlier writes are known: Node.js reports these errors before it calls the callback
  // of this empty write.
  await new Promise((written) => stdout.write("", written));
  return failures.get(stdout);
}
