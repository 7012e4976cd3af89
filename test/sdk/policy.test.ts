import fc from "fast-check";
import { expect, test } from "vitest";
import {
  compilePattern,
  filterMatches,
  keyAdmits,
  PATTERN_CACHE_SIZE,
  PatternError,
} from "../../sdk/policy/index.ts";

const device = { name: "web-1", tags: ["prod", "edge"] };
const everyone = { username: ".*", filter: {} };

test.each([
  ["root", "root", true],
  ["root", "notroot", true],
  ["^root$", "notroot", false],
  ["^root$", "root", true],
  ["", "anyone", true],
  ["Root", "root", false],
  ["(?i)Root", "root", true],
])("username %j admits %j: %j", (username, login, expected) => {
  expect(keyAdmits({ username, filter: {} }, device, login)).toBe(expected);
});

test.each([
  [{}, true],
  [{ hostname: "" }, true],
  [{ tags: [] }, true],
  [{ hostname: "web" }, true],
  [{ hostname: "^eb-1$" }, false],
  [{ tags: ["edge", "other"] }, true],
  [{ tags: ["other"] }, false],
  [{ tags: ["Prod"] }, false],
  [{ hostname: "^db", tags: ["prod"] }, false],
])("filter %j is for the device: %j", (filter, expected) => {
  expect(filterMatches(filter, device)).toBe(expected);
  expect(keyAdmits({ ...everyone, filter }, device, "root")).toBe(expected);
});

test("a tag filter admits exactly where a tag is shared", () => {
  const tags = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"));
  fc.assert(
    fc.property(fc.tuple(tags, tags), ([wanted, has]) => {
      const shared = wanted.length === 0 || new Set([...wanted, ...has]).size < wanted.length + has.length;
      expect(filterMatches({ tags: wanted }, { name: "x", tags: has })).toBe(shared);
    }),
  );
});

test("a pattern that does not compile is an error, and admits nobody", () => {
  for (const text of ["(", "(?=x)", "(a)\\1", "*"]) {
    expect(() => compilePattern(text)).toThrow(PatternError);
    expect(keyAdmits({ username: text, filter: {} }, device, "root")).toBe(false);
    expect(filterMatches({ hostname: text }, device)).toBe(false);
  }
});

test.each(["(a+)+$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x"])(
  "%s takes milliseconds on 100,000 characters",
  (text) => {
    const pattern = compilePattern(text);
    const input = `${"a".repeat(100_000)}!`;
    expect(pattern.test("warm up")).toBe(false);
    const started = performance.now();
    expect(pattern.test(input)).toBe(false);
    // Measured: under 50 ms; backtracking would take longer than the universe. Room for a slow and busy machine.
    expect(performance.now() - started).toBeLessThan(5000);
  },
);

test("compiled patterns are kept, the least recently used one goes first", () => {
  const kept = compilePattern("kept");
  const dropped = compilePattern("dropped");
  for (let index = 0; index < PATTERN_CACHE_SIZE - 1; index += 1) {
    compilePattern(`filler${index}`);
    if (index % 100 === 0) {
      expect(compilePattern("kept")).toBe(kept);
    }
  }
  expect(compilePattern("kept")).toBe(kept);
  expect(compilePattern("dropped")).not.toBe(dropped);
});
