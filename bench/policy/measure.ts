import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { PolicySize } from "../../test/policy/largePolicy.ts";
import type { OperationName } from "./operations.ts";
import type { TripleLoop } from "./tripleLoop.ts";

const COMMAND = fileURLToPath(new URL("./process.ts", import.meta.url));

/** What a process is to measure: operations of one size, or the triple loop. */
export interface Task {
  readonly size: PolicySize;
  readonly rounds: number;
  readonly operations: readonly OperationName[];
  readonly tripleLoop: boolean;
}

/** One operation; times are milliseconds for each question. */
export interface Timed {
  readonly operation: OperationName;
  /** Of the first run: nothing is compiled yet. */
  readonly first: number;
  /** Medians of all runs: on the clock, and of a core. */
  readonly median: number;
  readonly core: number;
  readonly outcome: string;
}

export interface Measured {
  readonly timed: readonly Timed[];
  readonly tripleLoop: TripleLoop | undefined;
  /** Megabytes of the process: with the policy alone, and at most. */
  readonly policyMegabytes: number;
  readonly megabytes: number;
  /** Most megabytes of objects and of sets that were there after a run, garbage among them. */
  readonly heapMegabytes: number;
}

/**
 * Measures in a process of its own, so that memory is that of the task alone.
 * @throws Error when the process fails
 */
export async function measure(task: Task): Promise<Measured> {
  const child = spawn(process.execPath, [COMMAND, JSON.stringify(task)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`Measuring ${JSON.stringify(task)} ended with ${code}`);
  return JSON.parse(text) as Measured;
}
