/** What commands read and write: `process`, or what stands for it in tests. */
export interface Io {
  /** The environment variables; the engine and its programs get no others. */
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** The input for prompts; commands prompt only if it is a terminal. */
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** The output; a terminal gets colours. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export function withEnv({ stdin, stdout, stderr }: Io, env: NodeJS.ProcessEnv): Io {
  return { stdin, stdout, stderr, env };
}

/** Errors of a stream without a reader any more: a pipe, a socket, a terminal. */
const GONE = ["EPIPE", "ECONNRESET", "EIO"];

/** Other errors of a stream, such as a full disk. */
const failures = new WeakMap<Output, NodeJS.ErrnoException>();

function onError(this: Output, error: NodeJS.ErrnoException): void {
  if (!GONE.includes(error.code ?? "")) failures.set(this, error);
}

/**
 * Lets a command finish when its output has no reader any more, as with `| head`: a stream error without a listener
 * would end the process in the middle of a run. {@link outputFailure} returns any other error.
 */
export function surviveLostReaders({ stdout, stderr }: Pick<Io, "stdout" | "stderr">): void {
  for (const stream of [stdout, stderr]) {
    if (!stream.listeners("error").includes(onError)) stream.on("error", onError);
  }
}

/** The error because of which output is missing; undefined if all of it was written, or it has no reader. */
export async function outputFailure({ stdout }: Pick<Io, "stdout">): Promise<Error | undefined> {
  // The callback of a write comes after the errors of all writes before it.
  await new Promise((written) => stdout.write("", written));
  return failures.get(stdout);
}
