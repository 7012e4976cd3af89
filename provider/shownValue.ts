/** A value for display. The string `[secret]` replaces a secret, and `[unknown]` replaces an unknown value. */
export type Shown = null | boolean | number | string | Shown[] | { [key: string]: Shown };

/** Returns true if a value is or contains one of the given placeholders, `[unknown]` or `[secret]`. */
export function holds(value: Shown | undefined, ...words: readonly ("[unknown]" | "[secret]")[]): boolean {
  if (Array.isArray(value)) return value.some((item) => holds(item, ...words));
  if (typeof value === "object" && value !== null)
    return Object.values(value).some((item) => holds(item, ...words));
  return words.some((word) => word === value);
}
