import { isIP } from "node:net";
import type { Subject } from "./pattern.ts";

/** A notation that a pattern is written in, although the service takes it for a regular expression. */
export interface Mistaken {
  readonly notation: "CIDR notation" | "a range of addresses" | "a glob";
  /** The pattern to write in its place, or the call of a helper that makes it; undefined where there is no short one. */
  readonly instead: string | undefined;
}

/** Anything with another meaning in a regular expression than in a glob. */
const REGULAR_EXPRESSION = /[\\^$()[\]{}+]/;

/**
 * Tells whether a pattern is in CIDR notation, a range of addresses or a glob. Each compiles as a regular expression,
 * matches other texts than it seems to, and often none at all.
 */
export function mistakenFor(pattern: string, subject: Subject): Mistaken | undefined {
  const parts = pattern
    .replaceAll("\\.", ".")
    .split(/[\s,|^$()]+/)
    .filter((part) => part !== "");
  if (parts.some(isCidr)) {
    const instead = subject === "address" && parts.every(isNetwork) ? calling("cidr", parts) : undefined;
    return { notation: "CIDR notation", instead };
  }
  if (parts.some(isRange)) return { notation: "a range of addresses", instead: undefined };
  return isGlob(pattern) ? { notation: "a glob", instead: `^${asExpression(pattern)}$` } : undefined;
}

/** One sentence about such a pattern, for errors. */
export function mistakenText({ notation, instead }: Mistaken): string {
  const meant = instead === undefined ? "" : ` Did you mean \`${instead}\`?`;
  return `A regular expression is expected, not ${notation}.${meant}`;
}

function isCidr(part: string): boolean {
  const [address = "", length = "", ...more] = part.split("/");
  return more.length === 0 && isIP(address) !== 0 && /^\d{1,3}$/.test(length);
}

const isNetwork = (part: string) => isCidr(part) || isIP(part) !== 0;

function isRange(part: string): boolean {
  const [first = "", last = "", ...more] = part.split("-");
  return more.length === 0 && isIP(first) !== 0 && (isIP(last) !== 0 || /^\d{1,3}$/.test(last));
}

/** True for `web-*`, `*`, `10.0.*.*` and `web-?`; false for `.*`, `web-.*` and whatever else has an operator. */
function isGlob(pattern: string): boolean {
  if (REGULAR_EXPRESSION.test(pattern) || pattern.includes("|")) return false;
  // After a letter, ? is more likely an optional one: `https?`.
  return /(^|[^.*?])\*|(^|[^.*?a-z])\?/i.test(pattern) || /^[\d.]*\.\*\.[\d.*]*$/.test(pattern);
}

const asExpression = (glob: string) =>
  glob.replaceAll(/[.*?]/g, (character) => ({ ".": "\\.", "*": ".*", "?": "." })[character] ?? "");

const calling = (helper: string, texts: readonly string[]) =>
  `${helper}(${texts.map((text) => JSON.stringify(text)).join(", ")})`;
