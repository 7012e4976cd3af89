import { cidr, hostname, login } from "../helpers/patterns.ts";
import { HelperCall } from "./literal.ts";

/** Matches a pattern in which every special character is escaped by a backslash. */
const ESCAPED = /^(?:[^\\^$.|?*+()[\]{}]|\\[\\^$.|?*+()[\]{}])+$/u;

/** Returns the call to `login` or `hostname` that returns the pattern; undefined if no call returns the pattern. */
export function namesIn(helper: "login" | "hostname", pattern: string): HelperCall | undefined {
  const parts = alternativesIn(pattern) ?? [];
  const args = parts.map((part) => (ESCAPED.test(part) ? part.replaceAll(/\\(.)/gu, "$1") : ""));
  return checked(helper, args, pattern);
}

/** Returns the call to `cidr` that returns the pattern; undefined if no call returns the pattern. */
export function rangesIn(pattern: string): HelperCall | undefined {
  const args = (alternativesIn(pattern) ?? []).map(rangeOf);
  return args.every((range) => range !== undefined) ? checked("cidr", args, pattern) : undefined;
}

const HELPERS = { login, hostname, cidr };

function checked(
  helper: HelperCall["helper"],
  args: readonly string[],
  pattern: string,
): HelperCall | undefined {
  try {
    return HELPERS[helper](...args) === pattern ? new HelperCall(helper, args) : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/**
 * Returns the alternatives of an anchored pattern: `a` and `b` for `^(a|b)$`, and `a` for `^a$`. An alternative can
 * contain groups. Returns undefined for a pattern that is not anchored.
 */
function alternativesIn(pattern: string): string[] | undefined {
  const inner = /^\^(.*)\$$/su.exec(pattern)?.[1];
  if (inner === undefined) return undefined;
  const tokens = [...inner.matchAll(/\\.|./gsu)].map(([token]) => token);
  const parts = [""];
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    const isLast = index === tokens.length - 1;
    const isOuter = (index === 0 && token === "(") || (isLast && token === ")");
    if (token === "(" || token === "[") depth += 1;
    if (token === ")" || token === "]") depth -= 1;
    // The first group ends before the pattern ends, so the pattern is not a single group of alternatives.
    if (depth === 0 && !isLast) return [inner];
    if (isOuter) continue;
    if (depth === 1 && token === "|") parts.push("");
    else parts[parts.length - 1] += token;
  }
  return parts.length > 1 ? parts : [inner];
}

/** Returns the address range that a pattern of four octets matches. Returns undefined for other patterns. */
function rangeOf(pattern: string): string | undefined {
  const octets = pattern.split("\\.").map((octet) => OCTETS.get(octet));
  if (octets.length !== 4 || !octets.every((octet) => octet !== undefined)) return undefined;
  const bits = octets.reduce((sum, { fixed }) => sum + fixed, 0);
  const address = octets.map(({ low }) => low).join(".");
  return bits === 32 ? address : `${address}/${bits}`;
}

/**
 * The first octet of every address range with a prefix length of 0 to 8, by the pattern of the octet. `fixed` is the
 * prefix length: the number of leading bits that all values of the octet have in common.
 */
const OCTETS: ReadonlyMap<string, { readonly low: number; readonly fixed: number }> = new Map(
  [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((fixed) =>
    Array.from({ length: 2 ** fixed }, (_, index) => {
      const low = index * 2 ** (8 - fixed);
      // The helper `cidr` returns the pattern of the whole range. This pattern begins with the pattern of the first
      // octet.
      const [octet = ""] = cidr(`${low}.0.0.0/${fixed}`).slice(1).split("\\.");
      return [octet, { low, fixed }] as const;
    }),
  ),
);
