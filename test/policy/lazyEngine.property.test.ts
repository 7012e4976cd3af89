import fc from "fast-check";
import { RE2JS } from "re2js";
import { afterEach, expect, test, vi } from "vitest";
import { newPattern, patternCost, totalPatternCost } from "../../sdk/policy/index.ts";
import { patternAndText, textsNear } from "./patternArbitraries.ts";

afterEach(() => vi.restoreAllMocks());

/** Parts of the syntax of patterns. Random sequences of them are often invalid, or valid only in JavaScript. */
const part = fc.constantFrom(
  "a",
  "b",
  "1",
  "-",
  " ",
  "^",
  "$",
  ".",
  "*",
  "+",
  "?",
  "|",
  "(",
  ")",
  "(?:",
  "(?i)",
  "(?=",
  "(?<n>",
  "(?P<n>",
  "[",
  "]",
  "[ab]",
  "[^a]",
  "{",
  "}",
  ",",
  "{2}",
  "{01}",
  "{,2}",
  "{2,1}",
  "{1001}",
  "{1000}",
  "\\",
  "\\.",
  "\\-",
  "\\d",
  "\\1",
  "\\b",
  "\\Q",
  "\\E",
  "\\pL",
  "\\x41",
  "\\u0041",
  "\\A",
  "\\z",
  "\\Z",
  "\\C",
  "/",
  "é",
  "\u{1f600}",
  "\ud800",
  "\0",
  "\n",
  ".*",
  "^*",
  "$?",
  "()",
  "(|a)",
  ":",
);
const syntax = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(""));
const pattern = fc.oneof(
  patternAndText.map(({ pattern }) => pattern),
  syntax,
);
const cases = pattern.chain((text) => textsNear(text).map((texts) => ({ text, texts: [...texts, ""] })));

/** Returns the engine's pattern; undefined if the text is no pattern. */
function engineOf(text: string): RE2JS | undefined {
  try {
    return RE2JS.compile(text);
  } catch {
    return undefined;
  }
}

test("a pattern of literals is valid RE2 and needs no engine, and every pattern matches like RE2", () => {
  let [free, costly, invalid] = [0, 0, 0];
  fc.assert(
    fc.property(cases, ({ text, texts }) => {
      const engine = engineOf(text);
      const compile = vi.spyOn(RE2JS, "compile");
      const compiled = newPattern(text);
      const found = texts.map((input) => compiled?.test(input));
      const engines = compile.mock.calls.length;
      compile.mockRestore();
      expect(found, JSON.stringify({ text, texts })).toEqual(texts.map((input) => engine?.test(input)));
      expect(texts.map((input) => compiled?.matches(input))).toEqual(
        texts.map((input) => engine?.matches(input)),
      );
      // A pattern that costs nothing needs no engine. Few patterns of literals have a cost.
      if (patternCost(text) === 0) expect([engines, engine === undefined], text).toEqual([0, false]);
      if (engine === undefined) invalid += 1;
      else if (patternCost(text) === 0) free += 1;
      else costly += 1;
    }),
    { numRuns: 5000 },
  );
  // Fails if the random patterns are too similar for a meaningful test.
  expect(Math.min(free, costly, invalid)).toBeGreaterThan(500);
});

test.each([
  ["groups", (depth: number) => `${"(".repeat(depth)}a${")".repeat(depth)}`],
  ["alternatives", (depth: number) => `${"(|a".repeat(depth)}${")".repeat(depth)}`],
  ["texts", (depth: number) => `${"(a|b".repeat(depth)}${")".repeat(depth)}`],
])("a pattern of deeply nested %s is valid like in RE2", (_, nested) => {
  for (const depth of [1, 10, 100, 200, 250, 255, 333, 340, 500, 511, 700, 999, 1001, 1500]) {
    expect(newPattern(nested(depth)) === undefined, String(depth)).toBe(
      engineOf(nested(depth)) === undefined,
    );
  }
});

test("equal patterns count once, and patterns of literals cost nothing", () => {
  expect(totalPatternCost(["^root$", "^(?:a|b)$", ".*", "", "^web-"])).toBe(0);
  const cost = patternCost("[0-9]+");
  expect(cost).toBeGreaterThan(50);
  expect(totalPatternCost(["[0-9]+", "root", "[0-9]+"])).toBe(cost);
});

test("the memory of a pattern is bounded for any number of different texts", () => {
  const engines: RE2JS[] = [];
  const compile = RE2JS.compile;
  vi.spyOn(RE2JS, "compile").mockImplementation((text) => {
    const engine = compile.call(RE2JS, text);
    engines.push(engine);
    return engine;
  });
  const text = "[ab]*a[ab]{12}[cd]";
  const compiled = newPattern(text);
  const unbounded = compile.call(RE2JS, text);
  const bytesOf = (engine: RE2JS | undefined) => {
    const states = [...(engine?.re2().dfa.cachedStates() ?? [])];
    return states.reduce((sum, state) => sum + 8 * (state.nfaStates.length + (state.next?.length ?? 0)), 0);
  };
  const textOf = (value: number) =>
    value.toString(2).padStart(13, "0").replaceAll("0", "a").replaceAll("1", "b");
  let most = 0;
  for (let value = 0; value < 1 << 13; value += 1) {
    expect(compiled?.test(textOf(value))).toBe(unbounded.test(textOf(value)));
    if (value % 64 === 0) most = Math.max(most, bytesOf(engines[0]));
  }
  expect(most).toBeGreaterThan(1000);
  expect(most).toBeLessThan(compiled?.bytes ?? 0);
  expect(bytesOf(unbounded)).toBeGreaterThan(20 * most);
});
