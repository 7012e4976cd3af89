/** Where a name has a part that it may share with others: behind a separator, and before a number. */
const PART_ENDS = /[-_.]|[^\d](?=\d)/gu;

/**
 * What names begin with, up to the end of one of their parts, and everything whose name begins so: `web-` and `web-eu-`
 * of `web-eu-1`.
 */
export function prefixesOf<T extends { readonly name: string }>(
  named: readonly T[],
): Map<string, readonly T[]> {
  const sorted = named.toSorted((left, right) =>
    left.name < right.name ? -1 : left.name > right.name ? 1 : 0,
  );
  const found = new Map<string, readonly T[]>();
  for (const [start, { name }] of sorted.entries()) {
    for (const match of name.matchAll(PART_ENDS)) {
      const prefix = name.slice(0, match.index + match[0].length);
      if (found.has(prefix)) continue;
      // In this order they stand together; not each of them has a part that ends here.
      let [first, end] = [start, start + 1];
      while (sorted[first - 1]?.name.startsWith(prefix)) first -= 1;
      while (sorted[end]?.name.startsWith(prefix)) end += 1;
      found.set(prefix, sorted.slice(first, end));
    }
  }
  return found;
}
