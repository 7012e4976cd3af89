import type { Style } from "../style.ts";
import { untilText } from "../words.ts";

const LISTED_MAX = 3;

/** Formats names as a list in a sentence: `a`, `a and b`, `a, b and 4 more`. */
export const listedNames = (names: readonly string[], style: Style): string =>
  listedTexts(names.map(style.name));

/** Formats strings as a list in a sentence, like {@link listedNames}. */
export function listedTexts(texts: readonly string[]): string {
  const shown = texts.slice(0, texts.length === LISTED_MAX + 1 ? LISTED_MAX + 1 : LISTED_MAX);
  const more = texts.length - shown.length;
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  const last = shown.pop() ?? "";
  return shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
}

/**
 * Formats names as a list in a sentence. If the names contain `representative`, the list ends with `placeholder`
 * instead of that name. `representative` is the name that represents all names that the list does not contain.
 */
export function withOthers(
  names: readonly string[],
  representative: string,
  placeholder: string,
  style: Style,
): string {
  const others = style.text(placeholder);
  const named = names.filter((name) => name !== representative);
  if (named.length === names.length) return listedNames(named, style);
  if (named.length === 0) return others;
  if (named.length > LISTED_MAX) return `${listedNames(named, style)}, and ${others}`;
  return `${named.map(style.name).join(", ")} and ${others}`;
}

/** Formats the expiry time of access: `until 2026-12-01 18:00 UTC`. */
export const endText = (end: string | null): string => (end === null ? "without an end" : untilText(end));

/** Formats the change of an expiry time: the new expiry time, followed by the previous one in brackets. */
export const changedEnd = ({
  until,
  untilBefore,
}: {
  readonly until: string | null;
  readonly untilBefore: string | null;
}): string => `${endText(until)} (before: ${endText(untilBefore)})`;
