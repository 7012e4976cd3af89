import { readdirSync, readFileSync } from "node:fs";
import { coreTimeOf } from "./server/process.ts";

/** What a command has used. */
export interface Usage {
  /** The sum of what each of its processes held at most. */
  readonly megabytes: number;
  /** Seconds of cores, of all of them. */
  readonly coreSeconds: number;
}

/** Most kibibytes that a process has held so far; 0 when it is gone. Linux only. */
export function peakOf(pid: number): number {
  try {
    const line = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return Number(line?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function coreTimeSoFar(pid: number): number {
  try {
    return coreTimeOf(pid);
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

/** Watches a process and all below it, ten times a second; answers what they have used. */
export function watchUsage(pid: number): () => Usage {
  const peaks = new Map<number, number>();
  const times = new Map<number, number>();
  const raise = (known: Map<number, number>, one: number, value: number) =>
    known.set(one, Math.max(known.get(one) ?? 0, value));
  const look = () => {
    for (const one of family(pid)) {
      raise(peaks, one, peakOf(one));
      raise(times, one, coreTimeSoFar(one));
    }
  };
  const timer = setInterval(look, 100);
  return () => {
    clearInterval(timer);
    return { megabytes: Math.round(sum(peaks) / 1000), coreSeconds: sum(times) / 1000 };
  };
}

const sum = (values: ReadonlyMap<unknown, number>) =>
  [...values.values()].reduce((all, value) => all + value, 0);
