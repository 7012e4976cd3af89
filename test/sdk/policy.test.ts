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
const anyLogin = { username: ".*", filter: {} };

test.each([
  ["root", "root", true],
  ["root", "notroot", true],
  ["^root$", "notroot", false],
  ["^root$", "root", true],
  ["", "ann", true],
  ["Root", "root", false],
  ["(?i)Root", "root", true],
])("compares the username %j with the login %j: %j", (username, login, expected) => {
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
])("compares the filter %j with the device: %j", (filter, expected) => {
  expect(filterMatches(filter, device)).toBe(expected);
  expect(keyAdmits({ ...anyLogin, filter }, device, "root")).toBe(expected);
});

test("matches a tag filter only with devices that share a tag", () => {
  const tags = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"));
  fc.assert(
    fc.property(fc.tuple(tags, tags), ([selected, deviceTags]) => {
      const shared =
        selected.length === 0 ||
        new Set([...selected, ...deviceTags]).size < selected.length + deviceTags.length;
      expect(filterMatches({ tags: selected }, { name: "x", tags: deviceTags })).toBe(shared);
    }),
  );
});

test("rejects a pattern that does not compile, and admits no login with such a pattern", () => {
  for (const text of ["(", "(?=x)", "(a)\\1", "*"]) {
    expect(() => compilePattern(text)).toThrow(PatternError);
    expect(keyAdmits({ username: text, filter: {} }, device, "root")).toBe(false);
    expect(filterMatches({ hostname: text }, device)).toBe(false);
  }
});

test.each(["(a+)+$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x"])(
  "evaluates %s on 100,000 characters in milliseconds",
  (text) => {
    const pattern = compilePattern(text);
    const input = `${"a".repeat(100_000)}!`;
    expect(pattern.test("warm up")).toBe(false);
    const started = performance.now();
    expect(pattern.test(input)).toBe(false);
    // A match takes less than 50 ms; with backtracking it would never end. The limit is high enough for a slow, busy
    // machine.
    expect(performance.now() - started).toBeLessThan(5000);
  },
);

test("caches compiled patterns and evicts the least recently used one", () => {
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
