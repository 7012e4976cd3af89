import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { compilePattern } from "../../sdk/policy/index.ts";

test.each([
  ["a repeated character beyond U+FFFF is one character", "^😀?root$", "root", true],
  ["half a surrogate pair does not match the whole character at the start", "^\ud83d", "😀", false],
  ["half a surrogate pair does not match the whole character at the end", "\ude00$", "😀", false],
  ["half a surrogate pair does not match within the whole character", "\ude00", "😀", false],
  ["a count with leading zeros is a literal", "^.{00,}", "root", false],
  ["a literal count with leading zeros matches its text", "^.{00,}", "x{00,}", true],
  ["a count with leading zeros is a literal after a literal, too", "root.{00,}", "root", false],
  ["a count without leading zeros repeats", "root.{0,}", "root", true],
  ["$ does not match before a final line break", "^root$", "root\n", false],
  [".* before $ does not match a line break", "^root.*$", "root\n", false],
  [".* matches after a line break in the literal", "^a\n.*$", "a\nb", true],
  [".* without $ ignores a line break after the match", "^root.*", "root\n", true],
  ["an escaped bracket is a literal", "^\\[a\\]$", "[a]", true],
])("%s", (_, pattern, text, expected) => {
  expect(RE2JS.compile(pattern).test(text)).toBe(expected);
  expect(compilePattern(pattern).test(text)).toBe(expected);
});
