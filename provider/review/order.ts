const collator = new Intl.Collator("en", { numeric: true });

/** Orders texts as people do, numbers in them by value; the same on every machine. */
export function byText(left: string, right: string): number {
  // The collator takes some different texts as equal.
  return collator.compare(left, right) || (left < right ? -1 : left > right ? 1 : 0);
}
