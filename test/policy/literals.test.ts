import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { compilePattern } from "../../sdk/policy/index.ts";

test.each([
  ["a repeated character beyond U+FFFF is one character", "^😀?root$", "root", true],
  ["half of one is not found in the whole", "^\ud83d", "😀", false],
  ["nor its other half", "\ude00$", "😀", false],
  ["nor within", "\ude00", "😀", false],
  ["a count with leading zeros is a literal", "^.{00,}", "root", false],
  ["and found as one", "^.{00,}", "x{00,}", true],
  ["also behind a literal", "root.{00,}", "root", false],
  ["a count without is a count", "root.{0,}", "root", true],
  ["the end is the very end", "^root$", "root\n", false],
  ["no line break before it either", "^root.*$", "root\n", false],
  ["a line break in the literal is none after it", "^a\n.*$", "a\nb", true],
  ["without an end nothing after it matters", "^root.*", "root\n", true],
  ["an escaped bracket is none", "^\\[a\\]$", "[a]", true],
])("%s", (_, pattern, text, expected) => {
  expect(RE2JS.compile(pattern).test(text)).toBe(expected);
  expect(compilePattern(pattern).test(text)).toBe(expected);
});
