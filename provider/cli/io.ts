/** What commands read and write: `process`, or what stands for it in tests. */
export interface Io {
  /** The environment variables; the engine and its programs get no others. */
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** Where answers to questions come from; nothing is asked unless it is a terminal. */
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Where text goes; a terminal gets it in colours. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** Turns the work of a command, which resolves with the exit code, into the function that commander calls. */
export type ActionOf = <Words extends unknown[]>(
  work: (io: Io, ...words: Words) => Promise<number>,
) => (...words: Words) => Promise<void>;

/** The same with other environment variables. */
export function withEnv({ stdin, stdout, stderr }: Io, env: NodeJS.ProcessEnv): Io {
  return { stdin, stdout, stderr, env };
}

/** Errors of a stream whose reader is gone: a pipe, a socket, a terminal. */
const GONE = ["EPIPE", "ECONNRESET", "EIO"];

/** What else went wrong with a stream, such as a full disk under a file. */
const failures = new WeakMap<Output, NodeJS.ErrnoException>();

function onError(this: Output, error: NodeJS.ErrnoException): void {
  if (!GONE.includes(error.code ?? "")) failures.set(this, error);
}

/**
 * Lets a command go on to its end when nobody reads its output any more, as with `| head`: a stream error without a
 * listener would end the process, in the middle of a run. Any other failure is kept for {@link outputFailure}.
 */
export function surviveLostReaders({ stdout, stderr }: Pick<Io, "stdout" | "stderr">): void {
  for (const stream of [stdout, stderr]) {
    if (!stream.listeners("error").includes(onError)) stream.on("error", onError);
  }
}

/** Why a part of the output was not written although somebody may read it; undefined where all was, or nobody does. */
export async function outputFailure({ stdout }: Pick<Io, "stdout">): Promise<Error | undefined> {
  // The callback of a write comes after the errors of all writes before it.
  await new Promise((written) => stdout.write("", written));
  return failures.get(stdout);
}
