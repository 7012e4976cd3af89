/**
 * By default V8 lets garbage grow to hundreds of megabytes before it collects it: at 512 MB first, then at several
 * times the memory in use. Here it collects at 48 MB, and then whenever the memory in use has grown by a third. The
 * maximum size of the heap stays (`--max-old-space-size`), for work which needs it.
 */
const OLD_SPACE = ["--initial-old-space-size=48", "--heap-growing-percent=33"];
/** Megabytes of each half of the space for new objects; V8's default is 16. */
const NEW_SPACE = "--max-semi-space-size=4";
const NEW_SPACE_GIVEN = /^--(max|min)[-_]semi[-_]space[-_]size\b/;

/**
 * The C library gives threads up to eight arenas per core, and never returns memory once used in them. Only glibc reads
 * this variable.
 */
const ARENAS = { MALLOC_ARENA_MAX: "2" };

/** Flags and environment with which Node uses little memory. */
interface BoundedStart {
  /** Flags of Node, including those of the present process. */
  readonly flags: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

/**
 * The flags and environment for a process that shall use little memory. The operator's own settings win.
 * @param flags Node's flags of the present process
 */
export function boundedStart(flags: readonly string[], environment: NodeJS.ProcessEnv): BoundedStart {
  const given = [...(environment.NODE_OPTIONS ?? "").split(/\s+/), ...flags];
  const newSpace = given.some((flag) => NEW_SPACE_GIVEN.test(flag)) ? [] : [NEW_SPACE];
  return { flags: [...OLD_SPACE, ...newSpace, ...flags], environment: { ...ARENAS, ...environment } };
}

/**
 * Restarts this process under the same id with {@link boundedStart}: V8 reads its heap sizes only once, and few of them
 * from the environment. To be called before anything else, since only the standard streams survive. Returns if that is
 * done already, if a process cannot be replaced (Windows), or if a parent process is connected by a channel, which
 * would be lost.
 */
export function boundMemory(): void {
  const { argv, execArgv, execPath } = process;
  if (OLD_SPACE.every((flag) => execArgv.includes(flag))) return;
  if (process.execve === undefined || process.platform === "win32" || process.channel) return;
  const { flags, environment } = boundedStart(execArgv, process.env);
  process.execve(execPath, [execPath, ...flags, ...argv.slice(1)], environment);
}
