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
