import { CombinedTransformer, JS, NFA, TooManyNodesError, Transformers, transform } from "refa";
import { PATTERN_SIZE_MAX, patternSize } from "../contract/patternSize.ts";
import { patternTree, RecentlyUsed, type Subject } from "./pattern.ts";

const OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

/**
 * Every text that a login name, an address or a device's name can be, and some more: a pattern that is found in none of
 * these is never found. IPv6 addresses are hexadecimal digits and dots with at least two colons.
 */
const TEXTS: Readonly<Record<Subject, string>> = {
  login: "[^\\n\\0]+",
  address: `${OCTET}(?:\\.${OCTET}){3}|[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*`,
  device: "[A-Za-z0-9_.-]+",
};

const STATES_MAX = 20_000;
const [AUTOMATA_MAX, ANSWERS_MAX] = [500, 20_000];
const PASSES_MAX = 20;

/** RE2 and JavaScript have different characters in these. */
const WHITE_SPACE = /\\[sS]/;

/**
 * True when no login name, address or device's name has all of the patterns in it. False where one has, and where that
 * cannot be decided: a pattern does not compile, RE2 and JavaScript read it differently, or it is too large.
 */
export const areDisjoint = (patterns: readonly string[], subject: Subject): boolean =>
  answers.get(JSON.stringify([subject, ...patterns]), () => compared(patterns, subject));

// A review asks the same of each pattern several times: before and after the change, and for several findings.
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

/** The texts in which a pattern is found, and maybe some more; undefined for every text. */
function foundIn(pattern: string): NFA | undefined {
  const isRead = pattern !== "" && patternTree(pattern) !== undefined && !WHITE_SPACE.test(pattern);
  return isRead && patternSize(pattern) <= PATTERN_SIZE_MAX
    ? automatonOf(`[^]*(?:${pattern})[^]*`)
    : undefined;
}

const automata = new RecentlyUsed<NFA>(AUTOMATA_MAX);

/** The automaton of the texts that are a regular expression of JavaScript as a whole, and maybe some more. */
const automatonOf = (source: string): NFA => automata.get(source, () => newAutomaton(source));

function newAutomaton(source: string): NFA {
  const { expression, maxCharacter } = JS.Parser.fromLiteral({ source, flags: "s" }).parse({
    assertions: "parse",
    maxNodes: STATES_MAX,
  });
  const rewritten = transform(REWRITING, expression, { maxPasses: PASSES_MAX });
  // The assertions that are left are at the ends of the text, where they hold; ignoring one that does not adds texts.
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
