import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { ClaimPattern } from "../../sdk/policy/claimPattern.ts";
import { unmatchedClaim } from "../../sdk/policy/index.ts";

/** Matches a value without regular expressions: by all ways to split the text at the first wildcard. */
function matches(required: string, text: string): boolean {
  if (required === "") return text === "";
  const isAny = required.startsWith("**");
  if (!required.startsWith("*")) return text[0] === required[0] && matches(required.slice(1), text.slice(1));
  const rest = isAny ? required.replace(/^\*+/, "") : required.slice(1);
  for (let end = 0; end <= text.length; end += 1) {
    if (!isAny && text.slice(0, end).includes("/")) return false;
    if (matches(rest, text.slice(end))) return true;
  }
  return false;
}

const texts = (characters: string) =>
  fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: 7 });
const requiredText = texts("ab/*.");
/** Generates a required value and a text that often matches: each wildcard is replaced. */
const pair = fc
  .tuple(requiredText, fc.array(texts("ab/."), { maxLength: 3 }), texts("ab/.\n"), fc.boolean())
  .map(([required, parts, other, isNear]) => {
    const pieces = required.split(/\*+/);
    const near = pieces
      .map((piece, index) => (index === 0 ? piece : (parts[index - 1] ?? "") + piece))
      .join("");
    return { required, text: isNear ? near : other };
  });

test("unmatchedClaim() matches the same texts as a matcher without regular expressions", () => {
  const counts = { matched: 0, unmatched: 0 };
  fc.assert(
    fc.property(pair, ({ required, text }) => {
      const isMatch = matches(required, text);
      expect(unmatchedClaim({ ref: required }, { ref: text })).toBe(isMatch ? undefined : "ref");
      expect(unmatchedClaim({ ref: required }, { ref: ["unlike", text] })).toBe(
        isMatch || matches(required, "unlike") ? undefined : "ref",
      );
      counts[isMatch ? "matched" : "unmatched"] += 1;
    }),
    { numRuns: 2_000 },
  );
  expect(Math.min(counts.matched, counts.unmatched)).toBeGreaterThan(200);
});

/** Matches a value by a regular expression engine. */
function matchesExpression(required: string, text: string): boolean {
  const parts = required.split(/(\*+)/).map((part) => {
    if (!part.startsWith("*")) return RE2JS.quote(part);
    return part.length === 1 ? "[^/]*" : "(?s:.*)";
  });
  return RE2JS.compile(parts.join("")).matches(text);
}

/** Generates the parts of required values and texts: short, and longer than a word of a set of states. */
const piece = fc.oneof(
  texts("ab/."),
  fc.string({ unit: fc.constantFrom("a", "b", "/", "é", "😀", "\n"), minLength: 20, maxLength: 70 }),
  fc.constantFrom("a".repeat(31), "a".repeat(32), "a".repeat(33), "ab".repeat(32)),
);
const wildcard = fc.constantFrom("*", "**");
const longPair = fc
  .tuple(
    fc.array(fc.tuple(piece, wildcard, fc.option(piece, { nil: "" })), { minLength: 1, maxLength: 8 }),
    fc.option(piece, { nil: "" }),
    fc.option(fc.nat(200)),
  )
  .map(([parts, end, removed]) => {
    const required = parts.map(([literal, star]) => literal + star).join("") + end;
    const text = parts.map(([literal, , between]) => literal + between).join("") + end;
    // Without one of its characters, a text that matches often does not match any more.
    const characters = [...text];
    if (removed !== null) characters.splice(removed % characters.length, 1);
    return { required, text: characters.join("") };
  });

test("ClaimPattern matches the same texts as a regular expression engine, also with hundreds of states", () => {
  const counts = { matched: 0, unmatched: 0 };
  fc.assert(
    fc.property(longPair, ({ required, text }) => {
      const isMatch = matchesExpression(required, text);
      expect(new ClaimPattern(required).matches(text)).toBe(isMatch);
      counts[isMatch ? "matched" : "unmatched"] += 1;
    }),
    { numRuns: 1_000 },
  );
  expect(Math.min(counts.matched, counts.unmatched)).toBeGreaterThan(100);
});

test.each([
  ["**a*b", "a/ab", true],
  ["**a*b", "a/a/b", false],
  [`${"a".repeat(31)}*b`, `${"a".repeat(31)}b`, true],
  [`${"a".repeat(32)}*b`, `${"a".repeat(32)}/b`, false],
  [`*${"ab".repeat(40)}`, `ab${"ab".repeat(40)}`, true],
  [`*${"ab".repeat(40)}`, "ab".repeat(39), false],
])("ClaimPattern: %s and %s: %s", (required, text, isMatch) => {
  expect(new ClaimPattern(required).matches(text)).toBe(isMatch);
});

test("unmatchedClaim() returns a claim that does not match, whatever the other claims are", () => {
  const claims = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("x", "y"), { minKeys: 1 });
  fc.assert(
    fc.property(claims, claims, (required, token) => {
      const wrong = Object.keys(required).filter((name) => token[name] !== required[name]);
      const found = unmatchedClaim(required, token);
      if (wrong.length === 0) expect(found).toBeUndefined();
      else expect(wrong).toContain(found);
    }),
  );
});

test.each([
  ["a missing claim", {}],
  ["an inherited property", Object.create({ ref: "main" }) as object],
  ["an object", { ref: { ref: "main" } }],
  ["a nested list", { ref: [["main"]] }],
  ["null", { ref: null }],
  ["an empty list", { ref: [] }],
])("unmatchedClaim() does not match %s", (_, claims) => {
  expect(unmatchedClaim({ ref: "main" }, claims as Record<string, unknown>)).toBe("ref");
  expect(unmatchedClaim({ ref: "**" }, claims as Record<string, unknown>)).toBe("ref");
});

test("unmatchedClaim() compares switches and numbers as text", () => {
  expect(unmatchedClaim({ a: "true", b: "12" }, { a: true, b: 12 })).toBeUndefined();
  expect(unmatchedClaim({ a: "true" }, { a: false })).toBe("a");
});
