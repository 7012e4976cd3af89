/**
 * By default V8 lets garbage grow to hundreds of megabytes before it looks for it: 512 MB at first, then several
 * times what is in use. Here it looks at 48 MB, and then whenever what is in use has grown by a third. How large the
 * heap may become is not touched (`--max-old-space-size`): that is for work which needs it.
 */
const OLD_SPACE = ["--initial-old-space-size=48", "--heap-growing-percent=33"];
/** Megabytes of each half of the space for new objects, 16 by default. */
const NEW_SPACE = "--max-semi-space-size=4";
const NEW_SPACE_GIVEN = /^--(max|min)[-_]semi[-_]space[-_]size\b/;

/**
 * The C library gives each thread an arena, eight for each core, and hands back none of what was once used in them.
 * Only glibc reads it.
 */
const ARENAS = { MALLOC_ARENA_MAX: "2" };

/** What Node is started with so that the service holds little memory. */
export interface BoundedStart {
  /** Flags of Node, those that it was started with among them. */
  readonly flags: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

/**
 * Flags and environment of a process that is to hold little memory. What the operator has set wins.
 * @param flags those of Node that it was started with
 */
export function boundedStart(flags: readonly string[], environment: NodeJS.ProcessEnv): BoundedStart {
  const given = [...(environment.NODE_OPTIONS ?? "").split(/\s+/), ...flags];
  const newSpace = given.some((flag) => NEW_SPACE_GIVEN.test(flag)) ? [] : [NEW_SPACE];
  return { flags: [...OLD_SPACE, ...newSpace, ...flags], environment: { ...ARENAS, ...environment } };
}

/**
 * Begins this process again, under its own id, with {@link boundedStart}: V8 reads the sizes of its heap once, and
 * from the environment it takes few of them. To be called before anything else is done: nothing but the standard
 * streams is kept. Returns where that is done already, where a process cannot be replaced (Windows), and where a
 * parent process is connected by a channel, which would be lost.
 */
export function boundMemory(): void {
  const { argv, execArgv, execPath } = process;
  if (OLD_SPACE.every((flag) => execArgv.includes(flag))) return;
  if (process.execve === undefined || process.platform === "win32" || process.channel) return;
  const { flags, environment } = boundedStart(execArgv, process.env);
  process.execve(execPath, [execPath, ...flags, ...argv.slice(1)], environment);
}
