import { CombinedTransformer, JS, NFA, TooManyNodesError, Transformers, transform } from "refa";
import { PATTERN_SIZE_MAX, patternSize } from "../contract/patternSize.ts";
import { patternTree, RecentlyUsed, type Subject } from "./pattern.ts";

const OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

/**
 * Expressions that match all possible login names, addresses and device names, and some other strings. A pattern that
 * matches none of these strings never matches. For simplicity, any string of hexadecimal digits, dots and at least two
 * colons is treated as an IPv6 address.
 */
const TEXTS: Readonly<Record<Subject, string>> = {
  login: "[^\\n\\0]+",
  address: `${OCTET}(?:\\.${OCTET}){3}|[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*`,
  device: "[A-Za-z0-9_.-]+",
};

const STATES_MAX = 20_000;
const [AUTOMATA_MAX, ANSWERS_MAX] = [500, 20_000];
const PASSES_MAX = 20;

/** Character classes that contain different characters in RE2 than in JavaScript. */
const WHITE_SPACE = /\\[sS]/;

/**
 * Returns true if no possible string matches all of the patterns. Depending on `subject`, the possible strings are
 * login names, addresses or device names. Returns false if a string matches all patterns, or if the function cannot
 * decide: a pattern is invalid, has a different meaning in JavaScript than in RE2, or is too large.
 */
export const areDisjoint = (patterns: readonly string[], subject: Subject): boolean =>
  answers.get(JSON.stringify([subject, ...patterns]), () => compared(patterns, subject));

// The cache saves time, because a review evaluates each pattern several times: before and after the change, and for
// several findings.
const answers = new RecentlyUsed<boolean>(ANSWERS_MAX);

function compared(patterns: readonly string[], subject: Subject): boolean {
  try {
    let common = automatonOf(TEXTS[subject]);
    for (const pattern of patterns) {
      const found = foundIn(pattern);
      if (found === undefined) continue;
      common = NFA.fromIntersection(common, found, new NFA.LimitedNodeFactory(STATES_MAX));
      if (common.isEmpty) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof TooManyNodesError) return false;
    throw error;
  }
}

/**
 * Returns an automaton that accepts all strings that a pattern matches, and possibly some other strings. Returns
 * undefined if every string may match.
 */
function foundIn(pattern: string): NFA | undefined {
  const isRead = pattern !== "" && patternTree(pattern) !== undefined && !WHITE_SPACE.test(pattern);
  return isRead && patternSize(pattern) <= PATTERN_SIZE_MAX
    ? automatonOf(`[^]*(?:${pattern})[^]*`)
    : undefined;
}

const automata = new RecentlyUsed<NFA>(AUTOMATA_MAX);

/**
 * Returns an automaton that accepts all strings that a JavaScript regular expression matches completely, and possibly
 * some other strings.
 */
const automatonOf = (source: string): NFA => automata.get(source, () => newAutomaton(source));

function newAutomaton(source: string): NFA {
  const { expression, maxCharacter } = JS.Parser.fromLiteral({ source, flags: "s" }).parse({
    assertions: "parse",
    maxNodes: STATES_MAX,
  });
  const rewritten = transform(REWRITING, expression, { maxPasses: PASSES_MAX });
  // With this option, the automaton ignores the assertions (such as `^` and `\b`) that are left after the rewriting. At
  // the beginning or end of the expression, an assertion is always true for a complete match. If any other assertion is
  // ignored, the automaton only accepts additional strings.
  const options = { assertions: "ignore" } as const;
  const limit = new NFA.LimitedNodeFactory(STATES_MAX);
  return NFA.fromRegex(rewritten, { maxCharacter }, options, limit);
}

const BY_TEXTS = { ignoreOrder: true, ignoreAmbiguity: true };
const REWRITING = new CombinedTransformer([
  Transformers.simplify(BY_TEXTS),
  Transformers.applyAssertions(BY_TEXTS),
  Transformers.inline(BY_TEXTS),
  Transformers.removeDeadBranches(BY_TEXTS),
]);
