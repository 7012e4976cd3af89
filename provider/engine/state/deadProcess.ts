import { readFileSync, readlinkSync } from "node:fs";

/** What tells a process from all others, as far as the system says it. */
export type ProcessIdentity = {
  pid: number;
  /** When it was started, as the system counts it: a later process may have the same id. */
  started?: string;
  /** The boot of the machine, and the PID namespace: in another one the same id means another process. */
  boot?: string;
  pidNamespace?: string;
};

/** This process. Systems other than Linux tell the id alone. */
export function ownIdentity(): ProcessIdentity {
  const said = {
    started: processStart(process.pid),
    boot: told(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    pidNamespace: told(() => readlinkSync("/proc/self/ns/pid")),
  };
  const known = Object.entries(said).filter(([, value]) => value !== undefined);
  return { pid: process.pid, ...Object.fromEntries(known) };
}

/**
 * True where a process of this host can be seen from here, or be missed: its id means the same here as it did there. On
 * Linux containers may share a host's name, so what does not say where it ran is elsewhere.
 */
export function isVisible(other: ProcessIdentity): boolean {
  const { boot, pidNamespace } = ownIdentity();
  if (process.platform === "linux" && (boot === undefined || pidNamespace === undefined)) return false;
  return other.boot === boot && other.pidNamespace === pidNamespace;
}

/** True where no process has this id, or the one that has it was started at another time. */
export function isDead({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  const now = processStart(pid);
  return started !== undefined && now !== undefined && started !== now;
}

function processStart(pid: number): string | undefined {
  const stat = told(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The command's name, in brackets, may hold spaces; what follows is regular, the start time its 20th field.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

function told(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
