import fc from "fast-check";

/** A pattern and a similar text, which it may match. */
interface PatternAndText {
  readonly pattern: string;
  readonly text: string;
}

const of = (pattern: string, text = pattern): PatternAndText => ({ pattern, text });
const join = (parts: readonly PatternAndText[]): PatternAndText => ({
  pattern: parts.map(({ pattern }) => pattern).join(""),
  text: parts.map(({ text }) => text).join(""),
});

/** Literals of typical policies. */
const LITERALS = [
  ...["a", "b", "root", "web-1", "-", "_", "/", " ", "é", "0"].map((text) => of(text)),
  of("\\.", "."),
  of("\\-", "-"),
  of("\\\\", "\\"),
  of("\\$", "$"),
  of("\\_", "_"),
];

/** Unusual syntax: only RE2 supports it, JavaScript interprets it differently, or readers easily misunderstand it. */
const ODD = [
  of("\\Qa.b\\E", "a.b"),
  of("\\Q|\\E", "|"),
  of("\\pN", "7"),
  of("\\p{Greek}", "α"),
  of("\\PL", "-"),
  of("[[:alpha:]]", "a"),
  of("[[:^digit:]]", "a"),
  of("[]a]", "]"),
  of("[^]a]", "b"),
  of("[\\]a]", "]"),
  of("[a-c\\d]", "b"),
  of("[^a]", "\n"),
  of("[😀b]", "😀"),
  of("(?i)", ""),
  of("(?i:Ab)", "aB"),
  of("(?s:.)", "\n"),
  of("(?m)", "\n"),
  of("(?m:^)", ""),
  of("(?U)", ""),
  of("(?P<n>a)", "a"),
  of("(?<m>b)", "b"),
  of("\\A", ""),
  of("\\z", ""),
  of("\\b", ""),
  of("\\B", ""),
  of("\\101", "A"),
  of("\\0", "\0"),
  of("\\x41", "A"),
  of("\\x{1F600}", "😀"),
  of("\\n", "\n"),
  of("\\t", "\t"),
  of("\\a", "\x07"),
  of("\\C", "a"),
  of("\\s", " "),
  of("\\S", "a"),
  of("\\w", "_"),
  of("\\D", "a"),
  of("\n"),
  of("😀"),
  of("\ud83d", "😀"),
  of("\ude00", "😀"),
  of("{"),
  of("}"),
  of("]"),
  of("{,2}"),
  of("a{2", "a{2"),
  of("\\ ", " "),
  of("^", ""),
  of("$", ""),
];

/** Quantifiers. RE2 treats a count with leading zeros as literal text. */
const REPETITIONS = [
  "*",
  "+",
  "?",
  "*?",
  "+?",
  "??",
  "{0}",
  "{2}",
  "{1,2}",
  "{0,}",
  "{2,}?",
  "{00,}",
  "{01}",
];

const repeated = (item: PatternAndText): fc.Arbitrary<PatternAndText> =>
  fc.tuple(fc.constantFrom(...REPETITIONS), fc.nat(2)).map(([repetition, times]) => ({
    pattern: item.pattern + repetition,
    text: item.text.repeat(times),
  }));

const anything = fc.constantFrom(of(".*", ""), of(".*", "x"), of(".*?", "\n"), of(".", "😀"), of(".+", "x"));
const literal = fc.constantFrom(...LITERALS);
const odd = fc.constantFrom(...ODD);
const alternation = (branch: fc.Arbitrary<PatternAndText>, open: fc.Arbitrary<string>, maxLength = 4) =>
  fc.tuple(open, fc.array(branch, { minLength: 1, maxLength }), fc.nat()).map(([start, branches, pick]) => ({
    pattern: `${start}${branches.map(({ pattern }) => pattern).join("|")}${start === "" ? "" : ")"}`,
    text: branches[pick % branches.length]?.text ?? "",
  }));

/** Patterns that users typically write: literals, alternatives and anchors. */
const plainBranch = fc
  .tuple(
    fc.constantFrom(of(""), of("^", "")),
    fc.array(
      fc.oneof(
        { weight: 5, arbitrary: literal },
        {
          weight: 1,
          arbitrary: alternation(
            fc.array(literal, { maxLength: 2 }).map(join),
            fc.constantFrom("(", "(?:"),
            9,
          ),
        },
      ),
      { maxLength: 4 },
    ),
    fc.oneof({ weight: 3, arbitrary: fc.constant(of("")) }, { weight: 2, arbitrary: anything }),
    fc.constantFrom(of(""), of("$", "")),
  )
  .map(([start, middle, any, end]) => join([start, ...middle, any, end]));
const plain = fc.oneof(plainBranch, alternation(plainBranch, fc.constant("")));

/** Patterns with any syntax, nested in any way. */
const wild = fc.letrec<{ node: PatternAndText }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof({ weight: 2, arbitrary: literal }, { weight: 3, arbitrary: odd }, anything),
    fc.array(tie("node"), { minLength: 1, maxLength: 4 }).map(join),
    alternation(tie("node"), fc.constantFrom("(", "(?:", "(?i:", "(?P<x>")),
    alternation(tie("node"), fc.constant("")),
    tie("node").chain(repeated),
    tie("node").map((node) => join([of("^", ""), node])),
    tie("node").map((node) => join([node, of("$", "")])),
  ),
})).node;

/**
 * Patterns with one unusual item between plain items. Such patterns are most likely to reveal a mistake in the
 * extraction of literals.
 */
const oddInPlain = fc
  .tuple(plainBranch, fc.oneof(odd, odd.chain(repeated), anything.chain(repeated)), plainBranch)
  .map(join);

/** Random texts; most of them are invalid patterns. */
const garbage = fc
  .string({ unit: fc.constantFrom(..."ab()[]{}|*+?\\^$.,01:<>-=!QE\n😀"), maxLength: 12 })
  .map((text) => of(text));

/** A random pattern in RE2's syntax, with a text that resembles its matches. One pattern in ten does not compile. */
export const patternAndText: fc.Arbitrary<PatternAndText> = fc.oneof(
  { weight: 4, arbitrary: plain },
  { weight: 3, arbitrary: oddInPlain },
  { weight: 3, arbitrary: wild },
  { weight: 1, arbitrary: garbage },
);

/**
 * Returns variants of a text: the text itself, parts of it, longer texts, a changed character, and another letter case.
 */
export const textsNear = (text: string): fc.Arbitrary<string[]> =>
  fc
    .tuple(
      fc.nat(text.length),
      fc.constantFrom("a", "b", "x", "\n", "😀", "\ud83d", "\ude00", "é", "1", " ", "]", "root", ".", "|"),
      fc.string({ unit: fc.constantFrom(..."ab-_.\n😀é01A]{}|"), maxLength: 6 }),
    )
    .map(([at, some, other]) => [
      text,
      some + text,
      text + some,
      text.slice(0, at) + some + text.slice(at),
      text.slice(0, at) + some + text.slice(at + 1),
      text.slice(0, at) + text.slice(at + 1),
      text.slice(0, at),
      text.slice(at),
      text.toUpperCase(),
      other,
    ]);
