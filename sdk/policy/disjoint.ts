import { CombinedTransformer, JS, NFA, TooManyNodesError, Transformers, transform } from "refa";
import { PATTERN_SIZE_MAX, patternSize } from "../contract/patternSize.ts";
import { patternTree, RecentlyUsed, type Subject } from "./pattern.ts";

const OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

/**
 * All possible login names, addresses and device names, and some more texts. A pattern that matches none of these
 * texts never matches. IPv6 addresses are hexadecimal digits and dots with at least two colons.
 */
const TEXTS: Readonly<Record<Subject, string>> = {
  login: "[^\\n\\0]+",
  address: `${OCTET}(?:\\.${OCTET}){3}|[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*`,
  device: "[A-Za-z0-9_.-]+",
};

const STATES_MAX = 20_000;
const [AUTOMATA_MAX, ANSWERS_MAX] = [500, 20_000];
const PASSES_MAX = 20;

/** Classes that contain different characters in RE2 and in JavaScript. */
const WHITE_SPACE = /\\[sS]/;

/**
 * True if no login name, address or device name matches all of the patterns. False if one matches, or if the function
 * cannot decide: a pattern does not compile, RE2 and JavaScript read it differently, or it is too large.
 */
export const areDisjoint = (patterns: readonly string[], subject: Subject): boolean =>
  answers.get(JSON.stringify([subject, ...patterns]), () => compared(patterns, subject));

// A review evaluates each pattern several times: before and after the change, and for several findings.
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

/** The texts that a pattern matches, and possibly some more; undefined for every text. */
function foundIn(pattern: string): NFA | undefined {
  const isRead = pattern !== "" && patternTree(pattern) !== undefined && !WHITE_SPACE.test(pattern);
  return isRead && patternSize(pattern) <= PATTERN_SIZE_MAX
    ? automatonOf(`[^]*(?:${pattern})[^]*`)
    : undefined;
}

const automata = new RecentlyUsed<NFA>(AUTOMATA_MAX);

/** The automaton of the texts that a JavaScript regular expression matches as a whole, and possibly some more texts. */
const automatonOf = (source: string): NFA => automata.get(source, () => newAutomaton(source));

function newAutomaton(source: string): NFA {
  const { expression, maxCharacter } = JS.Parser.fromLiteral({ source, flags: "s" }).parse({
    assertions: "parse",
    maxNodes: STATES_MAX,
  });
  const rewritten = transform(REWRITING, expression, { maxPasses: PASSES_MAX });
  // The remaining assertions are at the ends of the text, where they hold. Ignoring an assertion that does not hold
  // adds texts.
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
