const collator = new Intl.Collator("en", { numeric: true });

/** Orders texts as people do, with numbers in them by value, and in the same way on every machine. */
export function byText(left: string, right: string): number {
  // The collator takes some different texts as equal.
  return collator.compare(left, right) || (left < right ? -1 : left > right ? 1 : 0);
}

/** Orders things by their texts: by the first one, and where that is equal, by the next one. */
export const byTexts =
  <T>(...textsOf: readonly ((item: T) => string)[]) =>
  (left: T, right: T): number => {
    for (const textOf of textsOf) {
      const order = byText(textOf(left), textOf(right));
      if (order !== 0) return order;
    }
    return 0;
  };
