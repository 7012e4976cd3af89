import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { areDisjoint } from "../../sdk/policy/disjoint.ts";
import { patternOf } from "../../sdk/policy/pattern.ts";
import { patternAndText } from "./patternArbitraries.ts";

describe("a pattern that matches no address", () => {
  test.each([
    "198.51.100.0/24",
    "10.0.0.1-10.0.0.9",
    "2001:db8::/32",
    "^300\\.",
    "^10\\.0\\.0\\.256$",
    "office",
    "^$",
    "$^",
    "a^b",
  ])("includes %s", (pattern) => {
    expect(areDisjoint([pattern], "address")).toBe(true);
  });

  test.each([
    ["10.0.0.1"],
    ["^10\\.0\\.0\\.255$"],
    ["^10\\."],
    ["^(10|192)\\.[0-9.]+$"],
    [""],
    [".*"],
    ["^2001:db8:"],
    ["::1"],
    ["^::ffff:10\\.0\\.0\\.1$"],
    ["\\b10\\b"],
    ["(?i)fe80"],
    ["("],
  ])("does not include %s", (pattern) => {
    expect(areDisjoint([pattern], "address")).toBe(false);
  });
});

test("two patterns are disjoint if no text matches both", () => {
  expect(areDisjoint(["^root$", "^(ana|bea)$"], "login")).toBe(true);
  expect(areDisjoint(["^root$", "^(ana|root)$"], "login")).toBe(false);
  expect(areDisjoint(["root", "ana"], "login")).toBe(false);
  expect(areDisjoint(["^10\\.", "^192\\."], "address")).toBe(true);
  expect(areDisjoint(["^web-", "-1$"], "device")).toBe(false);
  expect(areDisjoint(["^web-[0-9]+$", "^db-[0-9]+$"], "device")).toBe(true);
});

test("patterns that match the same text are never disjoint", () => {
  const isText = (text: string) => text !== "" && !/[\n\0]/.test(text);
  fc.assert(
    fc.property(patternAndText, patternAndText, fc.boolean(), (left, right, joined) => {
      const text = joined ? left.text + right.text : left.text;
      fc.pre(isText(text));
      const patterns = [left.pattern, right.pattern].filter((pattern) => patternOf(pattern)?.test(text));
      fc.pre(patterns.length > 0);
      expect(areDisjoint(patterns, "login")).toBe(false);
    }),
    { numRuns: 500 },
  );
}, 60_000);
