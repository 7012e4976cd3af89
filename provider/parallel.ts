/**
 * Calls `work` for each item, with at most `most` calls at the same time. Resolves with the results in the order of the
 * items. After a failure, no further call starts.
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

/** A loop that fails closes a generator, which ends the loops of the other workers. An array iterator has no such end. */
function* entriesOf<T>(items: readonly T[]) {
  yield* items.entries();
}
