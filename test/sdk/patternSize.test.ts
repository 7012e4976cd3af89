import fc from "fast-check";
import { RE2JS } from "re2js";
import { describe, expect, test } from "vitest";
import { PATTERN_SIZE_MAX, patternSize } from "../../sdk/contract/patternSize.ts";
import { pattern } from "../../sdk/contract/schemas.ts";

const message = (text: string) => pattern.safeParse(text).error?.issues.map((issue) => issue.message);

/** Returns the compiled program of a pattern, or undefined for an invalid pattern. */
function compiled(text: string): RE2JS | undefined {
  try {
    return RE2JS.compile(text);
  } catch {
    return undefined;
  }
}

describe("a pattern", () => {
  test("is accepted or rejected in the same way each time, with any number of other patterns in between", () => {
    for (let round = 0; round < 300; round += 1) {
      expect(message("^web-")).toBeUndefined();
      expect(message("^web-(")).toEqual([expect.stringContaining("RE2 syntax")]);
      expect(message(`^web-${round}`)).toBeUndefined();
    }
  });

  test.each([
    "(a*){1000}".repeat(102),
    "(a*){1000}",
    "(x{0,1000})".repeat(90),
    "((a{10}){10}){10}".repeat(60),
    `(${"[a-z]".repeat(190)}){32}`,
    `(?i)${"[B-\uff80]".repeat(200)}`,
    `(?i)[${"B-\uff80".repeat(300)}]`,
    `(?i:${"[\\x{42}-\\x{ff80}]".repeat(50)})`,
    `(?i)${"\\pL".repeat(340)}`,
    `({${"0".repeat(900)}1}){490}`,
  ])("is rejected above the size limit, and the message has the limit: %#", (text) => {
    expect(text.length).toBeLessThanOrEqual(1024);
    expect(message(text)).toEqual([
      expect.stringMatching(
        /^must have a size of at most 2000 after its repetitions are expanded; it has \d+$/,
      ),
    ]);
  });

  test.each([
    ".*",
    "^(web|db)-\\d{1,3}\\.example\\.com$",
    "^([a-z0-9-]{1,63}\\.){1,10}$",
    "^(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}$",
    "^((25[0-5]|2[0-4]\\d|1?\\d?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1?\\d?\\d)$",
    "^.{1,255}$",
    "^\\pL{1,255}$",
    "(?i)^[a-z\u00e4\u00f6\u00fc-]+$",
    Array.from({ length: 100 }, (_, n) => `host-${n}`).join("|"),
    "a".repeat(1024),
  ])("is accepted: %s", (text) => {
    expect(message(text)).toBeUndefined();
  });
});

const atom = fc.constantFrom(
  "a",
  "\u00e9",
  "\u{1f600}",
  ".",
  "^",
  "$",
  "\\b",
  "\\d",
  "\\pL",
  "\\P{Greek}",
  "\\x41",
  "\\x{1F600}",
  "\\123",
  "\\{",
  "\\(",
  "\\Qa{5}(\\E",
  "\\Q\\E",
  "[a-z]",
  "[]a{9}]",
  "[^]()]",
  "[\\]{7}]",
  "[[:alpha:]{3}]",
  "[(]",
  "[](]",
  "[[:alpha:](]",
  "[\\p{Greek}-]",
  "(?i)",
  "(?s-i)",
  "{",
  "{,3}",
  "{02}",
  "{1,02}",
  "}",
  "]",
);
const repetition = (most: number) =>
  fc.oneof(
    fc.constantFrom("", "", "*", "+", "?", "*?", "+?", "??"),
    fc.tuple(fc.nat(most), fc.nat(most)).map(([least, more]) => `{${least},${least + more}}`),
    fc.nat(most).map((count) => `{${count}}`),
    fc.nat(most).map((least) => `{${least},}`),
    fc.nat(most).map((least) => `{${least},}?`),
  );
const regularExpression = (most: number) =>
  fc.letrec<{ node: string }>((tie) => ({
    node: fc
      .tuple(
        fc.oneof(
          { depthSize: "small", withCrossShrink: true },
          atom,
          fc.array(tie("node"), { minLength: 2, maxLength: 5 }).map((parts) => parts.join("")),
          fc
            .tuple(
              fc.constantFrom("(", "(?:", "(?i:", "(?P<n>", "(?<m>"),
              fc.array(tie("node"), { maxLength: 4 }),
            )
            .map(([open, branches]) => `${open}${branches.join("|")})`),
        ),
        repetition(most),
      )
      .map(([item, repeated]) => item + repeated),
  })).node;
const anyText = fc.string({
  unit: fc.constantFrom(..."ab(){}[]|*+?\\.^$,0129:<>-=!PQEpLxid\n\u00e9\u{1f600}"),
  maxLength: 40,
});

test("the size of a pattern is at least the number of instructions in the compiled program", () => {
  let sized = 0;
  fc.assert(
    fc.property(fc.oneof(regularExpression(6), anyText), (text) => {
      const size = patternSize(text);
      // Skips patterns above the size limit: they are rejected, and their compilation would only take time.
      if (size > 20_000) return;
      const program = compiled(text);
      if (program === undefined) return;
      sized += 1;
      expect(size).toBeGreaterThanOrEqual(program.programSize());
    }),
    { numRuns: 5000 },
  );
  expect(sized).toBeGreaterThan(1000);
});

test("an accepted pattern compiles to a program of limited size that can evaluate the longest name", () => {
  let accepted = 0;
  const name = "a".repeat(254);
  fc.assert(
    fc.property(regularExpression(1000), (text) => {
      if (!pattern.safeParse(text).success) return;
      accepted += 1;
      const program = RE2JS.compile(text);
      expect(program.programSize()).toBeLessThanOrEqual(PATTERN_SIZE_MAX);
      expect(typeof program.test(`${name}\u{1f600}`)).toBe("boolean");
    }),
    { numRuns: 2000 },
  );
  expect(accepted).toBeGreaterThan(200);
});
