import { isIP } from "node:net";
import type { AST } from "@eslint-community/regexpp";
import type { AccessDomain, AccessPolicy } from "./decisions.ts";
import { literalOf, patternOf, patternTree } from "./pattern.ts";

/** A login name that every domain has, as most devices do. */
export const DEFAULT_LOGIN = "root";
/** A login name that stands for every one that no pattern names. */
export const ANY_LOGIN = "someone";
/** An address that stands for every one that no rule names: of a network for documentation (RFC 5737). */
export const ANY_ADDRESS = "192.0.2.1";

/** What a domain holds beside what the patterns of the policies name. */
export interface DomainOptions {
  /** @default [] */
  readonly logins?: readonly string[];
  /** Client addresses. @default [] */
  readonly addresses?: readonly string[];
}

/** Ends that make an address of its beginning; patterns often spell only the first parts of addresses. */
const ENDS = ["", ".0.0.1", ".0.1", ".1", "0.0.1", "0.1", "1", ":1", "::1"];
/** What stands for any character in a pattern on addresses: dots are often not escaped, and parts written as `.+`. */
const FILLERS = [".", "1"];

/**
 * The login names and addresses for which policies are evaluated: {@link DEFAULT_LOGIN}, {@link ANY_LOGIN} and
 * {@link ANY_ADDRESS}, those of the options, and those that the patterns of keys and rules spell. A part of a pattern
 * that spells no text, such as `[a-z]+`, gives one example.
 */
export function domainOf(policies: readonly AccessPolicy[], options: DomainOptions = {}): AccessDomain {
  const logins = new Set([DEFAULT_LOGIN, ANY_LOGIN, ...(options.logins ?? [])]);
  const addresses = new Set([ANY_ADDRESS, ...(options.addresses ?? [])]);
  const patterns = { logins: new Set<string>(), addresses: new Set<string>() };
  for (const { keys, rules } of policies) {
    for (const { username } of [...keys, ...rules]) patterns.logins.add(username);
    for (const { sourceIp } of rules) patterns.addresses.add(sourceIp);
  }
  for (const pattern of patterns.logins) for (const login of samplesOf(pattern)) logins.add(login);
  for (const pattern of patterns.addresses) {
    for (const sample of FILLERS.flatMap((filler) => samplesOf(pattern, filler))) {
      const address = addressFrom(sample);
      if (address !== undefined) addresses.add(address);
    }
  }
  return { logins: [...logins], addresses: [...addresses] };
}

/** The text as an address, completed where it is the beginning of one; undefined where it is neither. */
export function addressFrom(begin: string): string | undefined {
  return ENDS.map((end) => begin + end).find((text) => isIP(text) !== 0);
}

const COMBINATIONS_MAX = 16;
const REPEATS_MAX = 64;

/**
 * Some texts in which a pattern is found, made of its literals. Each alternative of the pattern is in at least one of
 * them, and where they are few all combinations are there. Each text was tried on the pattern. There are none for a
 * pattern that does not compile, or that RE2 and JavaScript do not read alike.
 * @param filler stands where the pattern takes almost any character; by default `x`
 */
export function samplesOf(pattern: string, filler = "x"): string[] {
  const tree = patternTree(pattern);
  if (!tree) return [];
  // Before anything is written out: RE2 refuses repetitions of repetitions that would never end.
  const compiled = patternOf(pattern);
  if (!compiled) return [];
  const texts = new Set(sampler(filler)(tree.alternatives, COMBINATIONS_MAX));
  texts.delete("");
  return [...texts].filter(compiled.test);
}

function sampler(filler: string): (branches: readonly AST.Alternative[], most: number) => string[] {
  return alternatives;

  function alternatives(branches: readonly AST.Alternative[], most: number): string[] {
    const share = Math.floor(most / branches.length);
    return branches.flatMap(({ elements }) => sequence(elements, share));
  }

  function sequence(elements: readonly AST.Element[], most: number): string[] {
    let texts = [""];
    for (const element of elements) texts = combined(texts, one(element, most), most);
    return texts;
  }

  function one(element: AST.Element, most: number): string[] {
    switch (element.type) {
      case "Character":
        return [characterOf(element)];
      case "Group":
      case "CapturingGroup":
        return alternatives(element.alternatives, most);
      case "CharacterSet":
        return [memberOf(element)];
      case "CharacterClass":
        return [memberOfClass(element)];
      case "Quantifier":
        return repeated(element, most);
      default:
        return [""];
    }
  }

  function repeated({ element, min }: AST.Quantifier, most: number): string[] {
    if (element.type === "Assertion" || min > REPEATS_MAX) return [""];
    return sequence(
      Array.from({ length: min }, () => element),
      most,
    );
  }

  function memberOf(set: AST.CharacterSet): string {
    if (set.kind === "digit") return set.negate ? filler : "1";
    if (set.kind === "space") return set.negate ? filler : " ";
    if (set.kind === "word") return set.negate ? "-" : "x";
    return filler;
  }

  function memberOfClass({ elements, negate }: AST.CharacterClass): string {
    const [first] = elements;
    if (negate || first === undefined) return filler;
    if (first.type === "CharacterClassRange") return characterOf(first.min);
    if (first.type === "CharacterSet") return memberOf(first);
    return first.type === "Character" ? characterOf(first) : filler;
  }
}

const characterOf = (node: AST.Character) => literalOf(node) ?? String.fromCodePoint(node.value);

/** Every start with every end; where that would be too many, each of them with one. */
function combined(starts: readonly string[], ends: readonly string[], most: number): string[] {
  if (starts.length * ends.length <= most) return starts.flatMap((start) => ends.map((end) => start + end));
  return Array.from(
    { length: Math.max(starts.length, ends.length) },
    (_, index) => `${starts[index % starts.length]}${ends[index % ends.length]}`,
  );
}
