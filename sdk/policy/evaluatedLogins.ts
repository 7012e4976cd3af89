import { isIP } from "node:net";
import type { AST } from "@eslint-community/regexpp";
import { deciderOf } from "./access.ts";
import type { EvaluatedLogins } from "./decisions.ts";
import type { NamespacePolicy } from "./namespacePolicy.ts";
import { networkOf } from "./networks.ts";
import { literalOf, patternOf, patternTree } from "./pattern.ts";

/** The login name `root`. Every policy is evaluated for it, because it exists on most devices. */
export const DEFAULT_LOGIN = "root";
/** A login name that represents all login names that no pattern contains. */
export const ANY_LOGIN = "otheruser";
/**
 * An address that represents all addresses that no rule contains. The address is reserved for documentation (RFC 5737).
 */
export const ANY_ADDRESS = "192.0.2.1";

/** An IPv6 address that represents all addresses that no rule contains. It is reserved for documentation (RFC 3849). */
export const ANY_IPV6_ADDRESS = "2001:db8::1";

/** Login names and addresses to evaluate in addition to those that appear in the patterns of the policies. */
export interface EvaluationOptions {
  /** Login names. @default [] */
  readonly logins?: readonly string[];
  /** Client addresses. @default [] */
  readonly addresses?: readonly string[];
}

/**
 * Suffixes that complete the beginning of an address to a valid address. Patterns often contain only the beginning of
 * an address, such as `10.0.`.
 */
const ENDS = ["", ".0.0.1", ".0.1", ".1", "0.0.1", "0.1", "1", ":1", "::1"];
/**
 * Strings that replace wildcards such as `.` or `.+` in a pattern, to create a sample address. The dot is one of these
 * strings, because many patterns contain unescaped dots.
 */
const FILLERS = [".", "1"];

/**
 * Returns the login names and addresses for which policies are evaluated. These are {@link DEFAULT_LOGIN}, {@link
 * ANY_LOGIN}, {@link ANY_ADDRESS}, the names and addresses in the options, and the names and addresses in the policies.
 * In legacy mode, the names and addresses of a policy come from the patterns of keys and rules. If a part of a pattern
 * is not a literal, such as `[a-z]+`, the result contains one example of it. In identity mode, the names and addresses
 * come from the access policies.
 */
export function loginsToEvaluate(
  policies: readonly NamespacePolicy[],
  options: EvaluationOptions = {},
): EvaluatedLogins {
  const logins = new Set([DEFAULT_LOGIN, ANY_LOGIN, ...(options.logins ?? [])]);
  const addresses = new Set([ANY_ADDRESS, ...(options.addresses ?? [])]);
  const mentioned = policies.map((policy) => deciderOf(policy).mentioned());
  for (const login of mentioned.flatMap((one) => one.logins)) logins.add(login);
  const patterns = {
    logins: new Set(mentioned.flatMap(({ loginPatterns }) => loginPatterns)),
    addresses: new Set(mentioned.flatMap(({ addressPatterns }) => addressPatterns)),
  };
  for (const pattern of patterns.logins) for (const login of samplesOf(pattern)) logins.add(login);
  for (const pattern of patterns.addresses) {
    for (const sample of FILLERS.flatMap((filler) => samplesOf(pattern, filler))) {
      const address = addressFrom(sample);
      if (address !== undefined) addresses.add(address);
    }
  }
  const { inside, outside } = addressesOfNetworks(mentioned.flatMap(({ networks }) => networks));
  for (const address of [...inside, outside]) if (address !== "") addresses.add(address);
  return {
    logins: [...logins],
    addresses: [...addresses],
    ...(outside !== ANY_ADDRESS && { otherAddress: outside }),
  };
}

/** Returns the address that represents all addresses that no rule and no policy contains. */
export const otherAddressOf = ({ otherAddress = ANY_ADDRESS }: EvaluatedLogins): string => otherAddress;

/**
 * Returns one address for each part of the address space that the networks distinguish. A new part begins where a
 * network begins or ends. All addresses outside of the networks form one part, which `outside` represents. `outside` is
 * empty if there are no such addresses.
 */
function addressesOfNetworks(texts: readonly string[]) {
  const networks = [...new Set(texts)]
    .flatMap((text) => networkOf(text) ?? [])
    // A network of IPv4-mapped addresses contains no client.
    .filter((network) => network.contains(network.first));
  const isInside = (address: string) => networks.some((network) => network.contains(address));
  const ends = networks.flatMap(({ next }) => next ?? []);
  const outside = [ANY_ADDRESS, ANY_IPV6_ADDRESS, ...ends, "0.0.0.0", "::"].find((one) => !isInside(one));
  const inside = [...networks.map(({ first }) => first), ...ends.filter(isInside)];
  return { inside, outside: outside ?? "" };
}

/**
 * Returns the address that a string contains. If the string is the beginning of an address, completes it. Returns
 * undefined for any other string.
 */
export function addressFrom(begin: string): string | undefined {
  return ENDS.map((end) => begin + end).find((text) => isIP(text) !== 0);
}

const COMBINATIONS_MAX = 16;
const REPEATS_MAX = 64;

/**
 * Returns sample strings that a pattern matches, built from the literals of the pattern. Each alternative of the
 * pattern is in at least one sample. If there are few alternatives, the result contains all combinations. Each sample
 * is tested against the pattern. The result is empty for a pattern that is invalid, or that has a different meaning in
 * JavaScript than in RE2.
 * @param filler string for parts of the pattern that match almost any character; default: `x`
 */
export function samplesOf(pattern: string, filler = "x"): string[] {
  const tree = patternTree(pattern);
  if (!tree) return [];
  // RE2 compiles the pattern first, since it rejects nested repetitions whose expansion would take too long.
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

/**
 * Concatenates every start with every end. If there would be too many combinations, the result contains each start and
 * each end at least once.
 */
function combined(starts: readonly string[], ends: readonly string[], most: number): string[] {
  if (starts.length * ends.length <= most) return starts.flatMap((start) => ends.map((end) => start + end));
  return Array.from(
    { length: Math.max(starts.length, ends.length) },
    (_, index) => `${starts[index % starts.length]}${ends[index % ends.length]}`,
  );
}
