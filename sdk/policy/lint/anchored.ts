import { isIPv4 } from "node:net";
import { literalsOf } from "../literals.ts";
import type { Subject } from "./finder.ts";
import { quoted } from "./wording.ts";

/** True for a pattern that is plainly meant as a beginning: `^web-`, `^10\.0\.`. */
export function isBeginning(pattern: string): boolean {
  const literals = literalsOf(pattern);
  return literals?.kind === "start" && literals.texts.every((text) => /[.:_-]$/.test(text));
}

/**
 * How to write a pattern so that it admits what it says: with the helpers where it is a literal.
 * @param isDevice whether a device of the name is there
 */
export function anchored(pattern: string, subject: Subject, isDevice: (name: string) => boolean): string {
  if (subject === "address") return anchoredAddress(pattern);
  if (isBeginning(pattern)) return `Write ${opened(pattern)}.`;
  const texts = spelt(pattern);
  if (texts.length === 0) return `Write ${closed(pattern)}.`;
  const args = texts.map(quoted).join(", ");
  if (subject === "login") return `Write login(${args}).`;
  // The helper writes names in lower case.
  const exact = texts.every((text) => text === text.toLowerCase()) ? `hostname(${args})` : closed(pattern);
  return texts.every(isDevice)
    ? `Write ${exact}.`
    : `Write ${exact} for that name alone, or ${opened(pattern)} for all that it is found in now.`;
}

/** The texts that a pattern is, but for its anchors; none where it is more than that. */
function spelt(pattern: string): readonly string[] {
  const literals = pattern.includes(".*") ? undefined : literalsOf(pattern);
  return !literals || literals.kind === "needs" ? [] : literals.texts.filter((text) => text !== "");
}

/** A pattern that spells an address, or the beginning of one, means that; its dots may be escaped or not. */
function anchoredAddress(pattern: string): string {
  const text = withoutAnchors(pattern).replaceAll("\\.", ".");
  const octets = text.replace(/\.$/, "").split(".");
  const first = [...octets, "0", "0", "0"].slice(0, 4).join(".");
  if (isIPv4(first) && octets.length <= 4) {
    return `Write cidr(${quoted(octets.length === 4 ? first : `${first}/${8 * octets.length}`)}).`;
  }
  const begin = text.endsWith(":") && spelt(pattern).length === 1;
  return `Write ${begin ? `^${text}.*$` : closed(pattern)}.`;
}

/** Exactly what the pattern spells. */
function closed(pattern: string): string {
  return isAlternation(pattern) ? `^(?:${pattern})$` : `^${withoutAnchors(pattern)}$`;
}

/** What the pattern is found in, written out. */
function opened(pattern: string): string {
  if (isAlternation(pattern)) return `^.*(?:${pattern}).*$`;
  const before = pattern.startsWith("^") ? "" : ".*";
  const after = endsAnchored(pattern) ? "" : ".*";
  return `^${before}${withoutAnchors(pattern)}${after}$`;
}

const isAlternation = (pattern: string) => pattern.includes("|");
const endsAnchored = (pattern: string) => /(^|[^\\])(\\\\)*\$$/.test(pattern);
const withoutAnchors = (pattern: string) =>
  (endsAnchored(pattern) ? pattern.slice(0, -1) : pattern).replace(/^\^/, "");
