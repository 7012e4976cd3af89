import { RE2JS } from "re2js";
import { GatehouseError } from "../errors.ts";
import { type Literals, literalsOf } from "./literals.ts";
import { RecentlyUsed } from "./recentlyUsed.ts";

/** Thrown when a pattern is not a regular expression in RE2 syntax. */
export class PatternError extends GatehouseError {
  override readonly name = "PatternError";

  constructor(reason: string, options?: ErrorOptions) {
    super({ code: "pattern", detail: `not a regular expression in RE2 syntax: ${reason}` }, options);
  }
}

/** A compiled pattern. */
export interface Pattern {
  readonly text: string;
  /** Every text in which the pattern is found begins with one of these; undefined where that is not known. */
  readonly begins: readonly string[] | undefined;
  /** True when the pattern is found anywhere in `input` (unanchored; rules section 13). */
  test(input: string): boolean;
  /** True when the pattern matches the whole of `input`. */
  matches(input: string): boolean;
}

/** How many compiled patterns are kept; the least recently used one is dropped first. */
export const PATTERN_CACHE_SIZE = 1000;

const cache = new RecentlyUsed<Pattern>(PATTERN_CACHE_SIZE);

/**
 * Compiles a regular expression in RE2 syntax. It does not backtrack: the time of a test grows with the length of the
 * input alone, whatever the pattern.
 * @throws PatternError when the text is no regular expression
 */
export const compilePattern = (text: string): Pattern => cache.get(text, () => compile(text));

/**
 * True when the pattern matches the whole text, unlike those of keys and firewall rules, which match a part. An
 * invalid pattern never matches.
 */
export const matchesWhole = (pattern: string, text: string): boolean =>
  patternOf(pattern)?.matches(text) ?? false;

/** The compiled pattern; undefined for a text that is no regular expression: older servers stored such patterns. */
export function patternOf(text: string): Pattern | undefined {
  try {
    return compilePattern(text);
  } catch (error) {
    if (error instanceof PatternError) return undefined;
    throw error;
  }
}

/**
 * True when the pattern is found in the text; an empty one is found in every text.
 * @param broken the answer for a pattern that does not compile: false where a match lets somebody in, true where it
 * keeps somebody out, so that nobody gets in by accident
 */
export function patternFound(pattern: string, text: string, broken: boolean): boolean {
  return pattern === "" || (patternOf(pattern)?.test(text) ?? broken);
}

function compile(text: string): Pattern {
  let expression: RE2JS;
  try {
    expression = RE2JS.compile(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PatternError(reason, { cause });
  }
  const literals = literalsOf(text);
  const begins = literals && literals.kind !== "end" && literals.kind !== "part" ? literals.texts : undefined;
  return {
    ...{ text, begins },
    test: matcher(literals, (input) => expression.test(input)),
    matches: (input) => expression.matches(input),
  };
}

/** The test of a pattern. Most patterns of policies are literals, which need no engine. */
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
