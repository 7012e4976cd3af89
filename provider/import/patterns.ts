import { cidr, hostname, login } from "../helpers/patterns.ts";

/** A call of a helper that makes exactly a pattern. */
export interface HelperCall {
  readonly helper: "login" | "hostname" | "cidr";
  readonly args: readonly string[];
}

/** Special in patterns, unless a backslash stands before it. */
const SPECIAL = /^(?:[^\\^$.|?*+()[\]{}]|\\[\\^$.|?*+()[\]{}])+$/u;
const RE_ESCAPED = /\\(.)/gu;

/** The names that `login` or `hostname` made the pattern of; undefined where neither did. */
export function namesIn(helper: "login" | "hostname", pattern: string): HelperCall | undefined {
  const args = alternativesIn(pattern)?.map((part) =>
    SPECIAL.test(part) ? part.replaceAll(RE_ESCAPED, "$1") : "",
  );
  return checked({ helper, args: args ?? [] }, pattern);
}

/** The ranges that `cidr` made the pattern of; undefined where it did not. */
export function rangesIn(pattern: string): HelperCall | undefined {
  const args = alternativesIn(pattern)?.map(rangeOf) ?? [];
  return args.every((range) => range !== undefined) ? checked({ helper: "cidr", args }, pattern) : undefined;
}

const HELPERS = { login, hostname, cidr };

/** The call, where it makes exactly this pattern. */
function checked({ helper, args }: HelperCall, pattern: string): HelperCall | undefined {
  try {
    return HELPERS[helper](...args) === pattern ? { helper, args } : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The whole of `^a$`, or the alternatives of `^(a|b)$`, of which each may have groups of its own. */
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
    // What comes first is no group around all the rest.
    if (depth === 0 && !isLast) return [inner];
    if (isOuter) continue;
    if (depth === 1 && token === "|") parts.push("");
    else parts[parts.length - 1] += token;
  }
  return parts.length > 1 ? parts : [inner];
}

/** The range of four octets; undefined where they are none. */
function rangeOf(pattern: string): string | undefined {
  const octets = pattern.split("\\.").map(octetOf);
  if (octets.length !== 4 || octets.some((octet) => octet === undefined)) return undefined;
  const known = octets.filter((octet) => octet !== undefined);
  const bits = known.reduce((sum, { fixed }) => sum + fixed, 0);
  const address = known.map(({ low }) => low).join(".");
  return bits === 32 ? address : `${address}/${bits}`;
}

interface Octets {
  readonly low: number;
  /** How many of the first bits are the same in all of them. */
  readonly fixed: number;
}

/** The pattern of every octet that a range can have, by the pattern: those of each prefix of each length. */
const OCTETS: ReadonlyMap<string, Octets> = new Map(
  [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((fixed) =>
    Array.from({ length: 2 ** fixed }, (_, index) => {
      const low = index * 2 ** (8 - fixed);
      // The first octet of a range of such a length.
      const [octet = ""] = cidr(`${low}.0.0.0/${fixed}`).slice(1).split("\\.");
      return [octet, { low, fixed }] as const;
    }),
  ),
);

const octetOf = (pattern: string): Octets | undefined => OCTETS.get(pattern);
