import { addressFrom } from "../domain.ts";
import { literalsOf } from "../literals.ts";
import { samplesOf } from "../samples.ts";
import { type Finder, finderOf, type Subject } from "./finder.ts";

/** Most texts of the domain that are looked at; further ones are made up. */
const FOUND_MAX = 100;

/** What makes texts longer, the plainest first. */
const AFFIXES: Readonly<Record<Subject, readonly (readonly [before: string, after: string])[]>> = {
  login: [["not", ""], ...around(["x", "1", "-", "_", ".", "@"])],
  address: around(["1", "2", "f", "0", "1."]),
  device: [["not-", ""], ...around(["x", "1", "-", "_"])],
};

/** Names that a login or a device can have. */
const POSSIBLE = { login: /^[\w.@-]+$/, device: /^[\w-]+$/ } as const;

/**
 * A text in which a pattern is found although its whole is not what the pattern spells; undefined when there seems to
 * be none. An address among them is a real one.
 * @param known texts of the domain in which the pattern may be found
 */
export function counterexampleOf(
  pattern: string,
  subject: Subject,
  known: readonly string[],
): string | undefined {
  const kind = literalsOf(pattern)?.kind;
  if (kind === "whole" || kind === "line") return undefined;
  const finds = finderOf(pattern);
  // A pattern that ends inside a quotation (`\Q`) cannot be wrapped.
  const spells = finderOf(`^(?:${pattern})$`);
  if (!finds || !spells) return undefined;
  const found = firstFew(known, finds);
  const madeUp = () => longer(pattern, subject, found);
  // The addresses of a domain are made from the same patterns, so that made-up ones say more.
  const texts = subject === "address" ? [...madeUp(), ...found] : [...found, ...madeUp()];
  return texts.find((text) => finds(text) && !spells(text));
}

function firstFew(texts: readonly string[], finds: Finder): string[] {
  const found: string[] = [];
  for (const text of texts) {
    if (found.length === FOUND_MAX) break;
    if (finds(text)) found.push(text);
  }
  return found;
}

/** Texts that are longer than what the pattern seems to spell. */
function longer(pattern: string, subject: Subject, found: readonly string[]): string[] {
  const flagless = pattern.replace(/^\(\?[a-zA-Z]+\)/, "");
  const plain = flagless
    .replace(/^\^/, "")
    .replace(/\$$/, "")
    .replaceAll(/\\[QE]?/g, "");
  // Dots of addresses are often left as they are: samples have other characters there.
  const samples = subject === "address" ? [plain, ...samplesOf(flagless)] : [...samplesOf(flagless), plain];
  const texts = [...new Set([...samples, ...found.slice(0, 1)])];
  const made = AFFIXES[subject].flatMap(([before, after]) => texts.map((text) => before + text + after));
  return subject === "address"
    ? made.flatMap((text) => addressFrom(text) ?? [])
    : made.filter((text) => POSSIBLE[subject].test(text));
}

function around(affixes: readonly string[]): [before: string, after: string][] {
  return affixes.flatMap((affix): [string, string][] => [
    [affix, ""],
    ["", affix],
    [affix, affix],
  ]);
}
