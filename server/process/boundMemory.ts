/**
 * V8 flags for early garbage collection. By default, V8 first collects at 512 MB, and then at several times the memory
 * in use. With these flags, V8 first collects at 48 MB, and then whenever the memory in use has grown by a third. The
 * flags do not change the maximum heap size (`--max-old-space-size`), because some work needs a lot of memory.
 */
const OLD_SPACE = ["--initial-old-space-size=48", "--heap-growing-percent=33"];
/** Size of each half of V8's space for new objects, in megabytes. V8's default is 16 MB. */
const NEW_SPACE = "--max-semi-space-size=8";
const NEW_SPACE_GIVEN = /^--(max|min)[-_]semi[-_]space[-_]size\b/;

/**
 * Environment variable that limits the number of memory arenas of the C library. By default, threads use up to eight
 * arenas per core, and arenas never return used memory to the system. Only glibc reads this variable.
 */
const ARENAS = { MALLOC_ARENA_MAX: "2" };

/** Flags and environment variables with which Node uses little memory. */
interface BoundedStart {
  /** Node's flags, including the flags of the current process. */
  readonly flags: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

/**
 * Returns the flags and the environment for a process with low memory use. The operator's own settings take precedence.
 * @param flags Node's flags of the current process
 */
export function boundedStart(flags: readonly string[], environment: NodeJS.ProcessEnv): BoundedStart {
  const given = [...(environment.NODE_OPTIONS ?? "").split(/\s+/), ...flags];
  const newSpace = given.some((flag) => NEW_SPACE_GIVEN.test(flag)) ? [] : [NEW_SPACE];
  return { flags: [...OLD_SPACE, ...newSpace, ...flags], environment: { ...ARENAS, ...environment } };
}

/**
 * Restarts this process with {@link boundedStart}, under the same process id. A restart is necessary because V8 reads
 * the heap flags only at the start, and does not read all of them from the environment. Call this function first,
 * because only the standard streams stay open. Returns without a restart if the flags are already set, or if the system
 * cannot replace a process (Windows). Also returns without a restart if the process has an IPC channel to its parent
 * process, because a restart would close the channel.
 */
export function boundMemory(): void {
  const { argv, execArgv, execPath } = process;
  if (OLD_SPACE.every((flag) => execArgv.includes(flag))) return;
  if (process.execve === undefined || process.platform === "win32" || process.channel) return;
  const { flags, environment } = boundedStart(execArgv, process.env);
  process.execve(execPath, [execPath, ...flags, ...argv.slice(1)], environment);
}
