/**
 * Calls `work` for each item, with at most `most` calls at the same time. Resolves with the results in the order of the
 * items. After a call fails, no further call starts.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const left = entriesOf(items);
  const worker = async () => {
    for (const [index, item] of left) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: most }, worker));
  return results;
}

/**
 * Returns a generator that all workers share. If a call fails, the loop of its worker closes the generator, and this
 * ends the loops of the other workers. An array iterator would not be closed.
 */
function* entriesOf<T>(items: readonly T[]) {
  yield* items.entries();
}
