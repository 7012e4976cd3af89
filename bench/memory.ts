import { readdirSync, readFileSync } from "node:fs";

/** Most kibibytes that a process has held so far; 0 when it is gone. Linux only. */
export function peakOf(pid: number): number {
  try {
    const line = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return Number(line?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** The process and all below it. */
function family(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const [, parent] = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8")) ?? [];
      parents.set(Number(name), Number(parent));
    } catch {
      // Gone meanwhile.
    }
  }
  const found = [pid];
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child);
  return found;
}

/** Watches a process and its children; answers the sum of what each of them held at most, in megabytes. */
export function watchMemory(pid: number): () => number {
  const peaks = new Map<number, number>();
  const look = () => {
    for (const one of family(pid)) peaks.set(one, Math.max(peaks.get(one) ?? 0, peakOf(one)));
  };
  const timer = setInterval(look, 100);
  return () => {
    clearInterval(timer);
    return Math.round([...peaks.values()].reduce((sum, peak) => sum + peak, 0) / 1000);
  };
}
