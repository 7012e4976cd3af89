import { readdirSync, readFileSync } from "node:fs";

/** Returns a percentile of the values; 0 if there are no values. A `share` of 0.5 is the median. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);

export const sum = (values: Iterable<number>): number => [...values].reduce((all, value) => all + value, 0);

/** Runs a function, waits for its result, and returns the duration in seconds. */
export async function secondsOf(work: () => Promise<unknown> | unknown): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

/** Calls a function once for each number from 0 to `count - 1`. At most `atOnce` calls run at the same time. */
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
 * Returns the memory of a process in megabytes, now or at its peak. Linux only.
 * @throws Error the process has ended
 */
export function memoryOf(pid: number, which: "now" | "peak" = "now"): number {
  const pattern = which === "now" ? /^VmRSS:\s+(\d+) kB/m : /^VmHWM:\s+(\d+) kB/m;
  const [, kibibytes] = pattern.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  if (kibibytes === undefined) throw new Error(`process ${pid} has ended`);
  return (Number(kibibytes) * 1024) / 1e6;
}

/**
 * Clock ticks per second in the CPU times that Linux reports. The value is the same on every architecture that Node.js
 * supports.
 */
const TICKS = 100;

/**
 * Returns the CPU time that a process has used so far, in milliseconds. Linux only.
 * @throws Error the process has ended
 */
export function coreTimeOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The list begins with field 3 of the file, since the program name in field 2 may contain spaces. The CPU times are
  // fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}

/**
 * Calls a function ten times a second until the returned function is called. Ignores errors, since the measured process
 * may have ended.
 */
export function watch(sample: () => void): () => void {
  const timer = setInterval(() => {
    try {
      sample();
    } catch {
      // The measured process has ended or is restarting.
    }
  }, 100);
  return () => clearInterval(timer);
}

/** The resources that a command and all its child processes have used. */
interface Usage {
  /** The sum of the peak memory of all processes, in megabytes. */
  readonly megabytes: number;
  readonly coreSeconds: number;
}

/**
 * Measures a process and its descendants. The returned function ends the measurement and returns the resource usage.
 */
export function watchUsage(pid: number): () => Usage {
  const peaks = new Map<number, number>();
  const times = new Map<number, number>();
  const stops = watch(() => {
    for (const one of descendantsOf(pid)) {
      try {
        times.set(one, coreTimeOf(one));
        peaks.set(one, memoryOf(one, "peak"));
      } catch {
        // The process has ended.
      }
    }
  });
  return () => {
    stops();
    return { megabytes: Math.round(sum(peaks.values())), coreSeconds: sum(times.values()) / 1000 };
  };
}

/** Returns the ids of a process and all its descendants. */
function descendantsOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, parent] = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8")) ?? [];
      parents.set(Number(name), Number(parent));
    } catch {
      // The process has ended.
    }
  }
  const descendants = [pid];
  for (const one of descendants)
    for (const [child, parent] of parents) if (parent === one) descendants.push(child);
  return descendants;
}
