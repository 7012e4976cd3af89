import type { AccessKey, AccessRule } from "@gatehouse-access/sdk/policy";

/** Most names or addresses that {@link listText} shows. */
const LIST_MAX = 4;
/** Characters of a fingerprint that are enough to tell keys apart. */
const FINGERPRINT_WIDTH = 11;

/** The first few texts, and how many more there are, for a table: `a, b, c, d, 3 more`. */
export function listText(texts: readonly string[]): string {
  const more = texts.length - LIST_MAX;
  return [...texts.slice(0, LIST_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/** The first texts, and how many more there are, for a sentence: `a, b and 3 more`. */
export function firstOf(texts: readonly string[], most: number): string {
  const more = texts.length - most;
  return `${texts.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** `1 key`, `2 keys`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** A key's name with the beginning of its fingerprint, since several keys may have one name. */
export const keyText = ({ name, fingerprint }: AccessKey): string =>
  `${name} (${fingerprint.slice(0, FINGERPRINT_WIDTH)}…)`.trimStart();

/** `12 (allow, priority 7)`. */
export const ruleText = ({ id, action, priority }: Pick<AccessRule, "id" | "action" | "priority">): string =>
  `${id} (${action}, priority ${priority})`;
