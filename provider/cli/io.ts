/** What commands read and write: a process, or what stands for one. */
export interface Io {
  /** All settings; the engine and its programs get no other ones. */
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** Where answers come from; a terminal is asked. */
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Where text goes; a terminal gets colours. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** Makes of a command's work, which resolves with its exit code, what commander calls with the command line's words. */
export type ActionOf = <Words extends unknown[]>(
  work: (io: Io, ...words: Words) => Promise<number>,
) => (...words: Words) => Promise<void>;

/** The same with other settings. */
export function withEnv({ stdin, stdout, stderr }: Io, env: NodeJS.ProcessEnv): Io {
  return { stdin, stdout, stderr, env };
}
