import { isIPv4 } from "node:net";
import { literalsOf } from "../literals.ts";
import type { Subject } from "./finder.ts";
import { quoted } from "./wording.ts";

/** True for a pattern that is meant as the beginning of a text, such as `^web-` and `^10\.0\.`. */
export function isBeginning(pattern: string): boolean {
  const literals = literalsOf(pattern);
  return literals?.kind === "start" && literals.texts.every((text) => /[.:_-]$/.test(text));
}

/**
 * The sentence that says how to write a pattern with both ends anchored; for literals, with the helpers.
 * @param isDevice whether there is a device of this name
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

/** The texts that a pattern spells, its anchors aside; none where it is more than literals. */
function spelt(pattern: string): readonly string[] {
  const literals = pattern.includes(".*") ? undefined : literalsOf(pattern);
  return !literals || literals.kind === "needs" ? [] : literals.texts.filter((text) => text !== "");
}

/**
 * The same for a pattern on addresses. One that spells an address or its beginning means that, its dots escaped or not.
 */
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

/** The pattern, found in exactly what it spells. */
function closed(pattern: string): string {
  return isAlternation(pattern) ? `^(?:${pattern})$` : `^${withoutAnchors(pattern)}$`;
}

/** The pattern, found in the same texts as before, with its open ends written out. */
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
