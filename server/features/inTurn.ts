/** The last work of each key that has not ended. */
const last = new Map<string, Promise<unknown>>();

/**
 * Does work when all that this process was asked to do before under the same key has ended. Transactions that are
 * bound to meet on the same rows then need no second try here; those of other instances still may.
 */
export async function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
  const before = last.get(key);
  // Whoever asked for the work before hears of its failure.
  const run = before === undefined ? work() : before.then(work, work);
  last.set(key, run);
  try {
    return await run;
  } finally {
    if (last.get(key) === run) last.delete(key);
  }
}
