import { readFileSync } from "node:fs";

/**
 * When a process was started, as the system counts it, to tell it from a later one with the same id. Undefined
 * where the system does not say (outside Linux) or the process is gone.
 */
export function processStart(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The command's name, in brackets, may hold spaces; what follows is regular, the start time its 20th field.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

/** True where no process has this id, or the one that has it was started at another time. */
export function isDead(pid: number, started: string | undefined): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  const now = processStart(pid);
  return started !== undefined && now !== undefined && started !== now;
}
