import { isIP } from "node:net";
import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { RE2JS } from "re2js";
import { patternSize } from "../contract/patternSize.ts";
import { GatehouseError } from "../errors.ts";

/** A cache of the most recently used values, by key. A full cache removes the least recently used value. */
export class RecentlyUsed<T> {
  readonly #values = new Map<string, T>();
  readonly #size: number;

  /**
   * Creates an empty cache.
   * @param size maximum number of values
   */
  constructor(size: number) {
    this.#size = size;
  }

  /**
   * Returns the value of a key. If the cache does not contain the value, creates and stores it.
   * @throws the error of `create`; the cache then stores no value
   */
  get(key: string, create: () => T): T {
    const value = this.#values.has(key) ? (this.#values.get(key) as T) : create();
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size > this.#size) {
      const [oldest = ""] = this.#values.keys();
      this.#values.delete(oldest);
    }
    return value;
  }
}

/** Thrown when a pattern is not a regular expression in RE2 syntax. */
export class PatternError extends GatehouseError {
  override readonly name = "PatternError";

  constructor(reason: string, options?: ErrorOptions) {
    super({ code: "pattern", detail: `not a regular expression in RE2 syntax: ${reason}` }, options);
  }
}

/** The kind of string that a pattern matches: a login name, an address or a device name. */
export type Subject = "login" | "address" | "device";

/** A compiled pattern. */
export interface Pattern {
  readonly text: string;
  /**
   * The possible first characters of a match: every string that the pattern matches begins with one of these strings.
   * Undefined if they are not known.
   */
  readonly begins: readonly string[] | undefined;
  /** Estimate of the maximum memory that the pattern uses between two tests, in bytes. */
  readonly bytes: number;
  /** Returns true if the pattern matches any part of `input` (unanchored; rules section 13). */
  test(input: string): boolean;
  /** Returns true if the pattern matches the whole string `input`. */
  matches(input: string): boolean;
}

/** Maximum number of compiled patterns in the cache. */
export const PATTERN_CACHE_SIZE = 1000;

const cache = new RecentlyUsed<Pattern>(PATTERN_CACHE_SIZE);

/**
 * Compiles a regular expression in RE2 syntax. RE2 does not backtrack, so for any pattern, the time of a test depends
 * only on the length of the input.
 * @throws PatternError if the string is not a regular expression
 */
export const compilePattern = (text: string): Pattern => cache.get(text, () => compile(text));

/**
 * A source of compiled patterns, such as a cache. Returns undefined for a string that is not a regular expression in
 * RE2 syntax.
 */
export type PatternSource = (text: string) => Pattern | undefined;

/**
 * Returns true if the pattern matches the whole string. In contrast, the patterns of keys and firewall rules match any
 * part of a string. An invalid pattern never matches.
 * @param patterns the source of the compiled pattern; default: the cache of this module
 */
export const matchesWhole = (pattern: string, text: string, patterns: PatternSource = patternOf): boolean =>
  patterns(pattern)?.matches(text) ?? false;

/**
 * Returns the compiled pattern. Returns undefined for a string that is not a regular expression in RE2 syntax, such as
 * some patterns from older servers.
 */
export const patternOf: PatternSource = (text) => validOnly(() => compilePattern(text));

/** Compiles a pattern like {@link patternOf}, but without a cache. Used by callers that have their own cache. */
export const newPattern: PatternSource = (text) => validOnly(() => compile(text));

function validOnly(compiled: () => Pattern): Pattern | undefined {
  try {
    return compiled();
  } catch (error) {
    if (error instanceof PatternError) return undefined;
    throw error;
  }
}

/**
 * Returns true if the pattern matches any part of the string. An empty pattern matches every string.
 * @param broken the result for an invalid pattern. An invalid pattern must never give access, so pass false if a match
 *   allows a login, and true if a match denies a login
 * @param patterns the source of the compiled pattern; default: the cache of this module
 */
export function patternFound(
  pattern: string,
  text: string,
  broken: boolean,
  patterns: PatternSource = patternOf,
): boolean {
  return pattern === "" || (patterns(pattern)?.test(text) ?? broken);
}

/**
 * Maximum length of a pattern that can be compiled without the RE2 engine, in characters. RE2 rejects a pattern of more
 * than 1,000 levels. A nested group adds at most three levels, and a group that adds three levels has at least four
 * characters. Therefore, a pattern within this length has fewer than 1,000 levels.
 */
const LITERAL_MAX = 1024;

/** Matches a sequence of characters and escaped punctuation. */
const CHARACTERS = "(?:[A-Za-z0-9 _@:,/-]|\\\\[!-/:-@[\\]-`{-~])*";
/** Matches a pattern that consists of one literal, such as `^web-1$` and `web-.*`. */
const SINGLE_LITERAL = new RegExp(`^(\\^?)(${CHARACTERS})((?:\\.\\*)?)(\\$?)$`);
/** Matches a pattern that consists of alternative literals, such as `^(?:root|deploy)$`. */
const LITERAL_ALTERNATIVES = new RegExp(`^\\^\\((?:\\?:)?${CHARACTERS}(?:\\|${CHARACTERS})*\\)\\$?$`);

/** Returns true if only the RE2 engine can decide whether the pattern is valid and which strings it matches. */
const usesEngine = (text: string, literals: Literals | undefined): boolean =>
  literals === undefined || literals.kind === "needs" || text.length > LITERAL_MAX;

function compile(text: string): Pattern {
  // The engine comes first, since RE2 rejects patterns with too many levels. In such a pattern, a recursive function
  // could cause a stack overflow.
  let engine = text.length > LITERAL_MAX ? new Engine(text) : undefined;
  const literals = literalsOf(text);
  const begins = literals && literals.kind !== "end" && literals.kind !== "part" ? literals.texts : undefined;
  // A pattern of literals is always valid. It needs an engine only if it must match a whole string.
  if (usesEngine(text, literals)) engine ??= new Engine(text);
  const needed = (): Engine => {
    engine ??= new Engine(text);
    return engine;
  };
  return {
    text,
    begins,
    bytes: bytesOf(text, literals),
    test: matcher(literals, (input) => needed().test(input)),
    matches: (input) => needed().matches(input),
  };
}

/** Memory that an object of a pattern uses (such as a string), and memory for each character, in bytes. */
const [OBJECT_BYTES, CHARACTER_BYTES] = [100, 2];
/** Memory that an engine uses: a base, and an amount for each instruction of its pattern, in bytes. */
const ENGINE_BYTES = { base: 8192, perInstruction: 150 } as const;
/** Maximum memory for the states of an engine: a base, and an amount for each instruction of its pattern, in bytes. */
const STATES_BYTES = { base: 16_384, perInstruction: 16 } as const;

function bytesOf(text: string, literals: Literals | undefined): number {
  const texts = [text, ...(literals?.texts ?? [])];
  let bytes = 0;
  for (const { length } of texts) bytes += OBJECT_BYTES + CHARACTER_BYTES * length;
  const fixed = 4 * OBJECT_BYTES;
  if (!usesEngine(text, literals)) return fixed + bytes;
  const size = patternSize(text);
  for (const { base, perInstruction } of [ENGINE_BYTES, STATES_BYTES]) bytes += base + perInstruction * size;
  return fixed + bytes;
}

/** The RE2 engine of a pattern, with limited memory. */
class Engine {
  readonly #expression: RE2JS;
  #isBounded = false;

  /** Compiles a pattern for the engine. @throws PatternError if the string is not a regular expression */
  constructor(text: string) {
    try {
      this.#expression = RE2JS.compile(text);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new PatternError(reason, { cause });
    }
  }

  test(input: string): boolean {
    if (!this.#isBounded) this.#boundStates();
    return this.#expression.test(input);
  }

  matches(input: string): boolean {
    if (!this.#isBounded) this.#boundStates();
    return this.#expression.testExact(input);
  }

  /**
   * Limits the memory for the engine's states. By default, the engine adds states for the strings that it tests, until
   * they use 8 MB. With a lower limit, the engine deletes all states when they reach this limit. If a string needs too
   * many states, the engine tests the string without states. A lower limit also saves time: for a large pattern,
   * creating a state takes longer than testing some characters without states.
   */
  #boundStates(): void {
    this.#isBounded = true;
    const { dfa } = this.#expression.re2();
    const bytes = STATES_BYTES.base + STATES_BYTES.perInstruction * this.#expression.programSize();
    dfa.stateBudget = bytes;
    dfa.memBudget = bytes;
  }
}

/** The cost of an engine itself, expressed as a number of pattern instructions. */
const ENGINE_COST = 50;

/**
 * Returns true if the source of a pattern shows that the pattern needs no engine. This check is faster than parsing the
 * pattern.
 */
const isLiteral = (text: string): boolean =>
  text.length <= LITERAL_MAX &&
  (singleLiteral(text) !== undefined ||
    (LITERAL_ALTERNATIVES.test(text) && text.split("|").length <= TEXTS_MAX));

/**
 * Returns the cost of evaluating a pattern, in instructions. The cost is {@link patternSize} plus a constant for the
 * RE2 engine. It is 0 for a pattern of literals, such as `^web-1$` or `^(?:root|deploy)$`, which needs no engine.
 */
export const patternCost = (text: string): number => (isLiteral(text) ? 0 : ENGINE_COST + patternSize(text));

/**
 * Returns the total cost of evaluating several patterns. Equal patterns are counted once, and empty patterns cost
 * nothing.
 * @param max the limit of the caller; if the cost exceeds this limit, the result is any number above `max`
 */
export function totalPatternCost(texts: Iterable<string>, max = Number.POSITIVE_INFINITY): number {
  let sum = 0;
  for (const text of new Set(texts)) {
    sum += patternCost(text);
    if (sum > max) break;
  }
  return sum;
}

/**
 * Returns the test function of a pattern. Most patterns in policies are literals, which do not need a regular
 * expression engine.
 */
function matcher(literals: Literals | undefined, engine: Pattern["test"]): Pattern["test"] {
  if (literals === undefined) return engine;
  const { kind, texts } = literals;
  switch (kind) {
    case "whole": {
      const set = new Set(texts);
      return (input) => set.has(input);
    }
    case "start":
      return (input) => texts.some((text) => input.startsWith(text));
    case "line":
      return (input) => texts.some((text) => input.startsWith(text) && !input.includes("\n", text.length));
    case "end":
      return (input) => texts.some((text) => input.endsWith(text));
    case "part":
      return (input) => texts.some((text) => input.includes(text));
    case "needs":
      return (input) => texts.some((text) => input.startsWith(text)) && engine(input);
  }
}

const TEXTS_MAX = 64;

/**
 * A description of the strings that a pattern matches, by literals. With this description, most tests are string
 * comparisons, which are a hundred times faster than a regular expression engine. Kinds:
 * - `whole`: the pattern matches strings that are equal to one of `texts`;
 * - `start`, `end`, `part`: the pattern matches strings that begin with, end with or contain one of `texts`;
 * - `line`: the pattern matches strings that begin with one of `texts`, without a line break after it;
 * - `needs`: the pattern matches only strings that begin with one of `texts`, but the engine must test these strings.
 */
export interface Literals {
  readonly kind: "whole" | "start" | "line" | "end" | "part" | "needs";
  readonly texts: readonly string[];
}

/**
 * Returns the {@link Literals} of a pattern that consists of one literal; undefined for other patterns. Most patterns
 * in policies consist of one literal. For these patterns, building a syntax tree would take forty times as long.
 */
function singleLiteral(text: string): Literals | undefined {
  if (text.length > LITERAL_MAX) return undefined;
  const [, start, characters, anything, end] = SINGLE_LITERAL.exec(text) ?? [];
  if (characters === undefined || (!start && anything && end)) return undefined;
  const texts = [characters.replaceAll("\\", "")];
  if (!start) return { kind: end ? "end" : "part", texts };
  if (!end) return { kind: "start", texts };
  return { kind: anything ? "line" : "whole", texts };
}

/**
 * Returns the {@link Literals} of a pattern. Returns undefined if only a regular expression engine can decide whether a
 * string matches.
 */
export function literalsOf(text: string): Literals | undefined {
  const single = singleLiteral(text);
  if (single !== undefined) return single;
  const tree = patternTree(text);
  if (!tree) return undefined;
  const parts = tree.alternatives.map(({ elements }) => branch(elements));
  const [first] = parts;
  const texts = parts.flatMap((part) => part?.texts ?? []);
  if (!first || texts.length > TEXTS_MAX || parts.some((part) => part === undefined)) return undefined;
  if (parts.every((part) => part?.kind === first.kind)) return { kind: first.kind, texts };
  // The alternatives of the pattern have different kinds. If all alternatives are anchored at the beginning, only
  // strings that begin with one of `texts` can match.
  const anchored = parts.every((part) => part && part.kind !== "end" && part.kind !== "part");
  return anchored ? { kind: "needs", texts } : undefined;
}

/**
 * Returns the {@link Literals} of each alternative of a pattern, including alternatives in groups. Omits alternatives
 * that only a regular expression engine can evaluate. In this case, `isComplete` is false. For the kind `needs`,
 * `texts` contains only the first characters of possible matches.
 */
export function alternativesOf(text: string): {
  readonly literals: readonly Literals[];
  readonly isComplete: boolean;
} {
  const tree = patternTree(text);
  const all = tree ? spread(tree.alternatives, TEXTS_MAX) : undefined;
  const literals = all?.flatMap((elements) => branch(elements) ?? []) ?? [];
  return { literals, isComplete: all !== undefined && literals.length === all.length };
}

/**
 * Expands alternatives so that they contain no groups. Returns undefined if there are more than `max` alternatives.
 */
function spread(
  alternatives: readonly Pick<AST.Alternative, "elements">[],
  max: number,
): (readonly AST.Element[])[] | undefined {
  const all: (readonly AST.Element[])[] = [];
  for (const { elements } of alternatives) {
    let beginnings: (readonly AST.Element[])[] = [[]];
    for (const element of elements) {
      const isGroup = element.type === "Group" || element.type === "CapturingGroup";
      const parts = isGroup ? spread(element.alternatives, max) : [[element]];
      if (!parts || beginnings.length * parts.length > max) return undefined;
      beginnings = beginnings.flatMap((first) => parts.map((part) => [...first, ...part]));
    }
    all.push(...beginnings);
    if (all.length > max) return undefined;
  }
  return all;
}

const isStart = (node: AST.Element | undefined) => node?.type === "Assertion" && node.kind === "start";
const isEnd = (node: AST.Element | undefined) => node?.type === "Assertion" && node.kind === "end";
/** Returns true for `.*` and `.*?`. */
const isAnything = (node: AST.Element | undefined): boolean =>
  node?.type === "Quantifier" &&
  node.min === 0 &&
  node.max === Number.POSITIVE_INFINITY &&
  node.element.type === "CharacterSet" &&
  node.element.kind === "any";

function branch(elements: readonly AST.Element[]): Literals | undefined {
  const anchored = isStart(elements[0]);
  const { texts, rest } = spell(anchored ? elements.slice(1) : elements);
  const [first, second, ...more] = rest;
  if (anchored) {
    if (first === undefined) return { kind: "start", texts };
    if (isEnd(first) && second === undefined) return { kind: "whole", texts };
    if (isAnything(first) && second === undefined) return { kind: "start", texts };
    if (isAnything(first) && isEnd(second) && more.length === 0) return { kind: "line", texts };
    return { kind: "needs", texts };
  }
  if (first === undefined) return { kind: "part", texts };
  if (isEnd(first) && second === undefined) return { kind: "end", texts };
  return isAnything(first) && second === undefined ? { kind: "part", texts } : undefined;
}

/**
 * Returns the strings that the first elements match, and the remaining elements. The remaining elements begin with the
 * first element that is not a literal or that would result in too many strings.
 */
function spell(elements: readonly AST.Element[]): { texts: string[]; rest: readonly AST.Element[] } {
  let texts = [""];
  for (const [index, element] of elements.entries()) {
    const next = textsOf(element);
    if (next === undefined || texts.length * next.length > TEXTS_MAX)
      return { texts, rest: elements.slice(index) };
    texts = texts.flatMap((text) => next.map((more) => text + more));
  }
  return { texts, rest: [] };
}

function textsOf(element: AST.Element): string[] | undefined {
  const literal = literalOf(element);
  if (literal !== undefined) return [literal];
  if (element.type !== "Group" && element.type !== "CapturingGroup") return undefined;
  const branches = element.alternatives.map(({ elements }) => spell(elements));
  return branches.every(({ rest }) => rest.length === 0) ? branches.flatMap(({ texts }) => texts) : undefined;
}

const parser = new RegExpParser();

/**
 * Matches syntax that JavaScript interprets differently than RE2 or does not support:
 * - escapes with letters (`\Q`, `\pN`, `\A`, …), except the common classes;
 * - groups with flags or names;
 * - nested classes, and classes that begin with `]`;
 * - counts with leading zeros (literals in RE2);
 * - characters beyond U+FFFF and lone surrogates (RE2 reads code points).
 */
const DIFFERENT = /\\[^\W_dDwWsSbB]|\(\?(?!:)|\[\^?\]|\[[^\]]*\[|\{(?:\d+,)?0\d|[\ud800-\udfff]/;

/** Returns the syntax tree of a pattern; undefined if the pattern has a different meaning in JavaScript than in RE2. */
export function patternTree(text: string): AST.Pattern | undefined {
  if (DIFFERENT.test(text)) return undefined;
  try {
    return parser.parsePattern(text);
  } catch {
    // JavaScript does not support the syntax.
    return undefined;
  }
}

/**
 * Returns the character of a node that is a literal character or escaped punctuation. Returns undefined for other
 * nodes.
 */
export function literalOf(node: AST.Node): string | undefined {
  if (node.type !== "Character") return undefined;
  const { raw } = node;
  if (!raw.startsWith("\\")) return raw;
  return /^\\[!-/:-@[-`{-~]$/.test(raw) ? raw.slice(1) : undefined;
}

/**
 * A pattern in a notation such as CIDR. The service would nevertheless interpret the pattern as a regular expression.
 */
export interface Mistaken {
  readonly notation: "CIDR notation" | "a range of addresses" | "a glob";
  /** The correct pattern, or a helper call that returns the pattern. Undefined if there is no short replacement. */
  readonly instead: string | undefined;
}

const REGULAR_EXPRESSION = /[\\^$()[\]{}+]/;

/**
 * Detects a pattern that is in CIDR notation, a range of addresses, or a glob. Such a pattern is a valid regular
 * expression, but it matches different strings than intended, and often no string.
 */
export function mistakenFor(pattern: string, subject: Subject): Mistaken | undefined {
  const parts = pattern
    .replaceAll("\\.", ".")
    .split(/[\s,|^$()]+/)
    .filter((part) => part !== "");
  if (parts.some(isCidr)) {
    const instead = subject === "address" && parts.every(isNetwork) ? calling("cidr", parts) : undefined;
    return { notation: "CIDR notation", instead };
  }
  if (parts.some(isRange)) return { notation: "a range of addresses", instead: undefined };
  return isGlob(pattern) ? { notation: "a glob", instead: `^${asExpression(pattern)}$` } : undefined;
}

/** Returns the error message for a pattern in a different notation. */
export function mistakenText({ notation, instead }: Mistaken): string {
  const remedy = instead === undefined ? "" : ` Use \`${instead}\`.`;
  return `A regular expression is expected, not ${notation}.${remedy}`;
}

function isCidr(part: string): boolean {
  const [address = "", length = "", ...more] = part.split("/");
  return more.length === 0 && isIP(address) !== 0 && /^\d{1,3}$/.test(length);
}

const isNetwork = (part: string) => isCidr(part) || isIP(part) !== 0;

function isRange(part: string): boolean {
  const [first = "", last = "", ...more] = part.split("-");
  return more.length === 0 && isIP(first) !== 0 && (isIP(last) !== 0 || /^\d{1,3}$/.test(last));
}

/**
 * Returns true for the globs `web-*`, `*`, `10.0.*.*` and `web-?`. Returns false for `.*`, `web-.*` and other regular
 * expressions.
 */
function isGlob(pattern: string): boolean {
  if (REGULAR_EXPRESSION.test(pattern) || pattern.includes("|")) return false;
  // After a letter, `?` is probably an operator: in `https?`, the last letter is optional.
  return /(^|[^.*?])\*|(^|[^.*?a-z])\?/i.test(pattern) || /^[\d.]*\.\*\.[\d.*]*$/.test(pattern);
}

const asExpression = (glob: string) =>
  glob.replaceAll(/[.*?]/g, (character) => ({ ".": "\\.", "*": ".*", "?": "." })[character] ?? "");

const calling = (helper: string, texts: readonly string[]) =>
  `${helper}(${texts.map((text) => JSON.stringify(text)).join(", ")})`;
