const collator = new Intl.Collator("en", { numeric: true });

/** Orders texts as people do, numbers in them by value; the same on every machine. */
export function byText(left: string, right: string): number {
  // The collator takes some different texts as equal.
  return collator.compare(left, right) || (left < right ? -1 : left > right ? 1 : 0);
}

/** Orders things by texts of theirs; where the first ones are equal, by the next ones. */
export const byTexts =
  <T>(...textsOf: readonly ((item: T) => string)[]) =>
  (left: T, right: T): number => {
    for (const textOf of textsOf) {
      const order = byText(textOf(left), textOf(right));
      if (order !== 0) return order;
    }
    return 0;
  };

/** By kind and name: engines have steps in any order. */
export const byKindAndName = byTexts<{ type: string; name: string; urn: string }>(
  ({ type }) => type,
  ({ name }) => name,
  ({ urn }) => urn,
);
