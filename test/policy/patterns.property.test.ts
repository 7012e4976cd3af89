import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { compilePattern, PatternError, samplesOf } from "../../sdk/policy/index.ts";
import { type Literals, literalsOf } from "../../sdk/policy/pattern.ts";
import { patternAndText, textsNear } from "./patternArbitraries.ts";

/** The pattern as RE2 compiles it; undefined if the pattern is invalid. */
function engineOf(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(pattern);
  } catch {
    return undefined;
  }
}

const cases = patternAndText.chain(({ pattern, text }) =>
  textsNear(text).map((texts) => ({ pattern, texts })),
);

test("compilePattern() matches the same texts as RE2, with and without the use of the RE2 engine", () => {
  const kinds = new Map<Literals["kind"] | "engine", number>();
  let [pairs, matched, rejected] = [0, 0, 0];
  fc.assert(
    fc.property(cases, ({ pattern, texts }) => {
      const engine = engineOf(pattern);
      if (engine === undefined) {
        expect(() => compilePattern(pattern)).toThrow(PatternError);
        rejected += 1;
        return;
      }
      const kind = literalsOf(pattern)?.kind ?? "engine";
      kinds.set(kind, (kinds.get(kind) ?? 0) + texts.length);
      const compiled = compilePattern(pattern);
      for (const text of texts) {
        const expected = engine.test(text);
        expect(compiled.test(text), JSON.stringify({ pattern, text })).toBe(expected);
        pairs += 1;
        if (expected) matched += 1;
      }
    }),
    { numRuns: 6000 },
  );
  console.info(
    `${pairs} pairs, ${matched} matched, ${rejected} patterns rejected`,
    Object.fromEntries(kinds),
  );
  // Fails if the random patterns produced too few comparisons to be a meaningful test.
  expect(pairs).toBeGreaterThan(20_000);
  expect(Math.min(matched, pairs - matched)).toBeGreaterThan(5_000);
  expect(rejected).toBeGreaterThan(100);
  for (const kind of ["whole", "start", "line", "end", "part", "needs", "engine"] as const) {
    expect(kinds.get(kind), kind).toBeGreaterThan(200);
  }
});

test("a pattern matches all its samples, and a pattern that does not compile has none", () => {
  let samples = 0;
  fc.assert(
    fc.property(patternAndText, ({ pattern }) => {
      const engine = engineOf(pattern);
      const texts = samplesOf(pattern);
      for (const text of texts) expect(engine?.test(text), JSON.stringify({ pattern, text })).toBe(true);
      expect(texts).toEqual([...new Set(texts)]);
      expect(texts).not.toContain("");
      samples += texts.length;
    }),
    { numRuns: 3000 },
  );
  expect(samples).toBeGreaterThan(2_000);
});
