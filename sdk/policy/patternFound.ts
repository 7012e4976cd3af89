import { patternOf } from "./pattern.ts";

/**
 * True when the pattern is found in the text; an empty one is found in every text.
 * @param broken the answer for a stored pattern that does not compile (older servers took them): false where a
 * match admits somebody, true where it keeps somebody out, so that nobody gets in by an accident
 */
export function patternFound(pattern: string, text: string, broken: boolean): boolean {
  return pattern === "" || (patternOf(pattern)?.test(text) ?? broken);
}
