import { readdirSync, readFileSync } from "node:fs";

/** The value that a share of the values does not exceed; 0 without values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);

export const sum = (values: Iterable<number>): number => [...values].reduce((all, value) => all + value, 0);

/** Runs work to its end; gives the seconds that it took. */
export async function secondsOf(work: () => Promise<unknown> | unknown): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

/** Calls work with the numbers below `count`, `atOnce` calls at a time. */
export async function repeat(
  count: number,
  atOnce: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/**
 * Megabytes that a process holds in memory, or the most that it has held so far. Linux only.
 * @throws Error when the process has ended
 */
export function memoryOf(pid: number, which: "now" | "peak" = "now"): number {
  const pattern = which === "now" ? /^VmRSS:\s+(\d+) kB/m : /^VmHWM:\s+(\d+) kB/m;
  const [, kibibytes] = pattern.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  if (kibibytes === undefined) throw new Error(`process ${pid} has ended`);
  return (Number(kibibytes) * 1024) / 1e6;
}

/** Ticks in a second of the times that Linux reports of a process, on every architecture that Node.js runs on. */
const TICKS = 100;

/**
 * Milliseconds of a core that a process has used so far. Linux only.
 * @throws Error when the process has ended
 */
export function coreTimeOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // After the program's name in brackets, the state is the third field of the file; these are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}

/**
 * Calls a function ten times a second until the returned function is called. Errors count as nothing: the process that
 * is looked at has ended.
 */
export function watch(look: () => void): () => void {
  const timer = setInterval(() => {
    try {
      look();
    } catch {
      // The process has ended, or is being restarted.
    }
  }, 100);
  return () => clearInterval(timer);
}

/** The resources that a command and all its child processes have used. */
export interface Usage {
  /** The sum of the most that each process held. */
  readonly megabytes: number;
  readonly coreSeconds: number;
}

/** Watches a process and its descendants; the returned function ends that and gives what they have used. */
export function watchUsage(pid: number): () => Usage {
  const peaks = new Map<number, number>();
  const times = new Map<number, number>();
  const stops = watch(() => {
    for (const one of descendantsOf(pid)) {
      try {
        times.set(one, coreTimeOf(one));
        peaks.set(one, memoryOf(one, "peak"));
      } catch {
        // It has ended.
      }
    }
  });
  return () => {
    stops();
    return { megabytes: Math.round(sum(peaks.values())), coreSeconds: sum(times.values()) / 1000 };
  };
}

/** The process and all below it. */
function descendantsOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, parent] = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8")) ?? [];
      parents.set(Number(name), Number(parent));
    } catch {
      // It has ended.
    }
  }
  const found = [pid];
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child);
  return found;
}
