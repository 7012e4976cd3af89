import { BusyError } from "../errors.ts";

/** Works that may wait under one key; the time that the last of them waits is that of all the others. */
const WAITING = 500;

interface Line {
  /** The last work that has not ended. */
  last: Promise<unknown>;
  length: number;
}

/** By key. */
const lines = new Map<string, Line>();

/**
 * Does work when all that this process was asked to do before under the same key has ended. Transactions that are
 * bound to meet on the same rows then need no second try here; those of other instances still may.
 * @throws BusyError too many wait already
 */
export async function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
  const line = lines.get(key) ?? { last: Promise.resolve(), length: 0 };
  if (line.length > WAITING) {
    throw new BusyError("too many requests wait for the same namespace, try again", { "Retry-After": "2" });
  }
  // Whoever asked for the work before hears of its failure.
  const run = line.length === 0 ? work() : line.last.then(work, work);
  line.last = run;
  line.length += 1;
  lines.set(key, line);
  try {
    return await run;
  } finally {
    line.length -= 1;
    if (line.length === 0) lines.delete(key);
  }
}
