import { isIPv4 } from "node:net";
import type { Access, DecidingObject, DecidingPattern } from "../decider.ts";
import type { DeviceFilter } from "../decisions.ts";
import { areDisjoint } from "../disjoint.ts";
import { addressFrom, samplesOf } from "../evaluatedLogins.ts";
import { literalsOf, mistakenFor, mistakenText, type Pattern, patternOf, type Subject } from "../pattern.ts";
import { type Finding, type FindingObject, findingObject, objectName, quoted } from "./finding.ts";

/** A pattern of an object that authorizes logins. */
interface PatternUse extends DecidingPattern {
  readonly object: FindingObject;
  readonly objectName: string;
  /** The noun for the object in sentences. */
  readonly noun: "key" | "rule" | "policy";
  readonly effect: DecidingObject["effect"];
}

const NOUNS = { key: "key", rule: "rule", accessPolicy: "policy" } as const;

/** Returns the patterns of the objects in force. Omits empty patterns, which match everything. */
export function patternUses({ objects }: Access): PatternUse[] {
  const uses = objects.flatMap((one) =>
    one.patterns.map((pattern): PatternUse => {
      const { effect, kind } = one;
      return {
        object: findingObject(one),
        objectName: objectName(one),
        noun: NOUNS[kind],
        effect,
        ...pattern,
      };
    }),
  );
  return uses.filter(({ pattern }) => pattern !== "");
}

/** The consequence of an invalid pattern, as the end of a sentence. */
const BROKEN = {
  admit: () => "so the key admits no login",
  allow: ({ noun }: PatternUse) => `so the ${noun} allows nothing`,
  deny: ({ noun, subject }: PatternUse) => `so the ${noun} matches every ${subject}`,
} as const;

const EFFECTS = { admit: "admits", allow: "allows", deny: "denies" } as const;

const SUBJECTS = { login: "login name", address: "IP address", device: "device name" } as const;

/**
 * Returns findings for patterns that are not valid, are in a different notation, or match no possible string. Each
 * pattern has at most one finding.
 */
export function wrongPatterns(uses: readonly PatternUse[]): Finding[] {
  return uses.flatMap((use): Finding[] => {
    const { objectName, noun, field, pattern, object, effect, subject } = use;
    const found = { severity: "error", object, field } as const;
    const what = `${objectName}: ${field} ${quoted(pattern)}`;
    if (patternOf(pattern) === undefined) {
      const message = `${what} is not a regular expression in RE2 syntax, ${BROKEN[effect](use)}.`;
      return [{ ...found, rule: "broken-pattern", message, suggestion: "Rewrite the pattern." }];
    }
    const mistaken = mistakenFor(pattern, subject);
    if (mistaken) {
      const message = `${what} is ${mistaken.notation}, but the service interprets it as a regular expression.`;
      return [{ ...found, rule: "mistaken-pattern", message, suggestion: mistakenText(mistaken) }];
    }
    if (!areDisjoint([pattern], subject)) return [];
    const message = `${what} matches no ${SUBJECTS[subject]}, so the ${noun} never ${EFFECTS[effect]} a login.`;
    return [{ ...found, rule: "never-matches", message, suggestion: "Correct the pattern." }];
  });
}

/** Returns true if a key, rule or policy matches nothing because of the pattern. */
export const matchesNothing = ({ pattern, subject, effect }: PatternUse): boolean =>
  patternOf(pattern) === undefined ? effect !== "deny" : areDisjoint([pattern], subject);

const LETTERS = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"];

/**
 * Sample strings that have no character in common. A pattern that matches all of them is assumed to match every string.
 */
const PROBES: Readonly<Record<Subject, readonly string[]>> = {
  login: [...LETTERS, ".", "@", "root", "ana.reis@example.com"],
  address: [
    "192.0.2.1",
    "10.255.3.46",
    "87.87.87.87",
    "2001:db8::1",
    "::",
    "fe::",
    "fe80::abcd:ef01:2345:6789",
  ],
  device: [...LETTERS, "web-1", "00-1b-44-11-3a-b7"],
};

/**
 * Returns true if the pattern matches every string.
 * @param broken the result for an invalid pattern
 */
export function isEverything(pattern: string, subject: Subject, broken: boolean): boolean {
  const finds = patternOf(pattern)?.test;
  return finds ? PROBES[subject].every(finds) : broken;
}

/**
 * Returns true if the filter matches every device.
 * @param broken the result for an invalid pattern
 */
export function isEveryDevice({ hostname, tags }: DeviceFilter, broken: boolean): boolean {
  return hostname ? isEverything(hostname, "device", broken) : !tags?.length;
}

/**
 * Returns findings for patterns that are not anchored, and that therefore also match strings that are longer than their
 * literals.
 */
export function unanchoredPatterns(access: Access, uses: readonly PatternUse[]): Finding[] {
  const { logins, addresses } = access.evaluated;
  const nameOf = new Map(access.policy.devices.map(({ uid, name }) => [uid, name]));
  const names = new Set(nameOf.values());
  const known: Readonly<Record<Subject, (pattern: string) => readonly string[]>> = {
    login: () => logins,
    address: () => addresses,
    // `access` caches the devices of each filter. Therefore, each pattern is tested only once on each device name, even
    // with 10,000 device names.
    device: (hostname) =>
      access.uidsOf(access.devicesOf({ hostname }, false)).flatMap((uid) => nameOf.get(uid) ?? []),
  };
  const examples = new Map<string, string | undefined>();
  return uses.flatMap((use): Finding[] => {
    const { object, objectName, effect, field, subject, pattern } = use;
    const name = `${subject} ${pattern}`;
    if (!examples.has(name)) {
      const all = isEverything(pattern, subject, false);
      examples.set(name, all ? undefined : counterexampleOf(pattern, subject, known[subject](pattern)));
    }
    const example = examples.get(name);
    if (example === undefined) return [];
    return [
      {
        rule: "unanchored-pattern",
        severity: effect === "deny" || isBeginning(pattern) ? "info" : "warning",
        message: `${objectName}: ${field} ${quoted(pattern)} is not anchored at both ends, so it also ${EFFECTS[effect]} the ${subject} ${quoted(example)}.`,
        object,
        field,
        suggestion: anchored(pattern, subject, (text) => names.has(text)),
        evidence: { counterexample: { [subject]: example } },
      },
    ];
  });
}

const FOUND_MAX = 100;

const AFFIXES: Readonly<Record<Subject, readonly (readonly [before: string, after: string])[]>> = {
  login: [["not", ""], ...around(["x", "1", "-", "_", ".", "@"])],
  address: around(["1", "2", "f", "0", "1."]),
  device: [["not-", ""], ...around(["x", "1", "-", "_"])],
};

const POSSIBLE = { login: /^[\w.@-]+$/, device: /^[\w-]+$/ } as const;

/**
 * Finds a string that a pattern matches only because the pattern is not anchored at both ends. For address patterns,
 * the string is a valid address. Returns undefined if the search finds no such string.
 * @param known evaluated login names, addresses or device names to try first
 */
function counterexampleOf(pattern: string, subject: Subject, known: readonly string[]): string | undefined {
  const kind = literalsOf(pattern)?.kind;
  if (kind === "whole" || kind === "line") return undefined;
  const finds = patternOf(pattern)?.test;
  // If the pattern ends inside a quotation (`\Q`), the pattern with anchors at both ends does not compile.
  const spells = patternOf(`^(?:${pattern})$`)?.test;
  if (!finds || !spells) return undefined;
  const found = firstFew(known, finds);
  const invented = () => longer(pattern, subject, found);
  // For addresses, generated strings come first. They are more useful examples than the evaluated addresses, which are
  // derived from the same patterns.
  const texts = subject === "address" ? [...invented(), ...found] : [...found, ...invented()];
  return texts.find((text) => finds(text) && !spells(text));
}

function firstFew(texts: readonly string[], finds: Pattern["test"]): string[] {
  const found: string[] = [];
  for (const text of texts) {
    if (found.length === FOUND_MAX) break;
    if (finds(text)) found.push(text);
  }
  return found;
}

function longer(pattern: string, subject: Subject, found: readonly string[]): string[] {
  const flagless = pattern.replace(/^\(\?[a-zA-Z]+\)/, "");
  const plain = flagless
    .replace(/^\^/, "")
    .replace(/\$$/, "")
    .replaceAll(/\\[QE]?/g, "");
  // For addresses, the text of the pattern comes first. Patterns often contain unescaped dots, which a sample can
  // replace by other characters.
  const samples = subject === "address" ? [plain, ...samplesOf(flagless)] : [...samplesOf(flagless), plain];
  const texts = [...new Set([...samples, ...found.slice(0, 1)])];
  const candidates = AFFIXES[subject].flatMap(([before, after]) =>
    texts.map((text) => before + text + after),
  );
  return subject === "address"
    ? candidates.flatMap((text) => addressFrom(text) ?? [])
    : candidates.filter((text) => POSSIBLE[subject].test(text));
}

function around(affixes: readonly string[]): [before: string, after: string][] {
  return affixes.flatMap((affix): [string, string][] => [
    [affix, ""],
    ["", affix],
    [affix, affix],
  ]);
}

/** Returns true for a pattern that is probably intended as a prefix, such as `^web-` and `^10\.0\.`. */
function isBeginning(pattern: string): boolean {
  const literals = literalsOf(pattern);
  return literals?.kind === "start" && literals.texts.every((text) => /[.:_-]$/.test(text));
}

/**
 * Returns a suggestion to anchor a pattern at both ends.
 * @param isDevice returns true if a device has the given name
 */
function anchored(pattern: string, subject: Subject, isDevice: (name: string) => boolean): string {
  if (subject === "address") return anchoredAddress(pattern);
  if (isBeginning(pattern)) return `Write ${opened(pattern)}.`;
  const texts = spelled(pattern);
  if (texts.length === 0) return `Write ${closed(pattern)}.`;
  const args = texts.map(quoted).join(", ");
  if (subject === "login") return `Write login(${args}).`;
  // `hostname()` converts names to lower case, so it is suggested only for names that are in lower case.
  const exact = texts.every((text) => text === text.toLowerCase()) ? `hostname(${args})` : closed(pattern);
  return texts.every(isDevice)
    ? `Write ${exact}.`
    : `Write ${exact} for only that name, or ${opened(pattern)} for all names that it matches now.`;
}

/**
 * Returns the literals of a pattern, without anchors. The result is empty if the pattern does not consist of literals.
 */
function spelled(pattern: string): readonly string[] {
  const literals = pattern.includes(".*") ? undefined : literalsOf(pattern);
  return !literals || literals.kind === "needs" ? [] : literals.texts.filter((text) => text !== "");
}

/**
 * Returns a suggestion for an address pattern. If the pattern is an address or the beginning of an address, suggests a
 * network, even if the dots in the pattern are not escaped.
 */
function anchoredAddress(pattern: string): string {
  const text = withoutAnchors(pattern).replaceAll("\\.", ".");
  const octets = text.replace(/\.$/, "").split(".");
  const first = [...octets, "0", "0", "0"].slice(0, 4).join(".");
  if (isIPv4(first) && octets.length <= 4) {
    return `Write cidr(${quoted(octets.length === 4 ? first : `${first}/${8 * octets.length}`)}).`;
  }
  const begin = text.endsWith(":") && spelled(pattern).length === 1;
  return `Write ${begin ? `^${text}.*$` : closed(pattern)}.`;
}

function closed(pattern: string): string {
  return isAlternation(pattern) ? `^(?:${pattern})$` : `^${withoutAnchors(pattern)}$`;
}

/** Returns a pattern that matches the same strings, with an explicit `.*` at each open end. */
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
