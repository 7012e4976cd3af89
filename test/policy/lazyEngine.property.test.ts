import fc from "fast-check";
import { RE2JS } from "re2js";
import { afterEach, expect, test, vi } from "vitest";
import { newPattern, patternCost, totalPatternCost } from "../../sdk/policy/index.ts";
import { patternAndText, textsNear } from "./patternArbitraries.ts";

afterEach(() => vi.restoreAllMocks());

/** Parts of the syntax of patterns. Random sequences of them are often invalid, or valid only in JavaScript. */
const part = fc.constantFrom(
  ...[
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
  ],
  ...[
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
  ],
  ...[
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
  ],
  ...["\ud800", "\0", "\n", ".*", "^*", "$?", "()", "(|a)", ":"],
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
      expect(engines > 0, text).toBe(patternCost(text) > 0);
      if (engine === undefined) invalid += 1;
      else if (engines === 0) free += 1;
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
  expect(cost).toBeGreaterThan(100);
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
  const compiled = newPattern("[ab]*a[ab]{12}[cd]");
  const bits = (value: number) =>
    [...value.toString(2).padStart(13, "0")].map((bit) => "ab"[Number(bit)]).join("");
  let [most, drops, last] = [0, 0, 0];
  for (let value = 0; value < 1 << 13; value += 1) {
    compiled?.test(bits(value));
    const { lazyDFA } = engines[0]?.re2() ?? {};
    const used = lazyDFA ? lazyDFA.maxMem - lazyDFA.memBudget : 0;
    most = Math.max(most, used);
    if (used < last) drops += 1;
    last = used;
  }
  // Without the bound, the states of the engine use several times as much.
  expect(most).toBeGreaterThan(8_000);
  expect(most).toBeLessThan(16_384);
  expect(drops).toBeGreaterThan(10);
});
