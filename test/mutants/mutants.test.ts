import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mutantsOf, mutated, ROOT, readSource } from "./mutant.ts";
import { mutants } from "./mutants.ts";

describe("the mutants", () => {
  it("apply to the present sources: each text to replace occurs once", () => {
    const faults = mutants.flatMap((mutant) => {
      try {
        mutated(mutant, readSource(mutant.file));
        return [];
      } catch (error) {
        return [error instanceof Error ? error.message : String(error)];
      }
    });
    expect(faults).toEqual([]);
  });

  it("name existing test files, and a part of a test's name in these files", () => {
    const missing = mutants.filter(({ test, name = "" }) => {
      const file = join(ROOT, test);
      return !existsSync(file) || !readFileSync(file, "utf8").includes(name);
    });
    expect(missing.map(({ guard }) => guard)).toEqual([]);
  });

  it("are about different guards", () => {
    const guards = mutants.map(({ guard }) => guard);
    expect(guards.filter((guard, index) => guards.indexOf(guard) !== index)).toEqual([]);
  });
});

it("a table states changes as removed and added words", () => {
  const table = {
    "a.ts": {
      "a.test.ts > rejects": { one: "a[-b-]{+c+}d", two: "a[-b-]" },
      "b.test.ts": { three: "{+c+}d" },
    },
  };
  const rejects = { file: "a.ts", test: "a.test.ts", name: "rejects" };
  expect(mutantsOf(table)).toEqual([
    { ...rejects, guard: "one", find: "abd", replace: "acd" },
    { ...rejects, guard: "two", find: "ab", replace: "a" },
    { file: "a.ts", test: "b.test.ts", name: undefined, guard: "three", find: "d", replace: "cd" },
  ]);
});

describe("a mutant", () => {
  const mutant = { guard: "", file: "a.ts", find: "b", replace: "c", test: "" };

  it("replaces its text", () => {
    expect(mutated(mutant, "abd")).toBe("acd");
  });

  it.each([
    ["a text that is missing", mutant, "ad", "occurs 0 times"],
    ["a text that occurs twice", mutant, "abdb", "occurs 2 times"],
    ["an empty text", { ...mutant, find: "" }, "abd", "occurs 0 times"],
    ["a replacement without a change", { ...mutant, replace: "b" }, "abd", "changes nothing"],
  ])("is an error with %s", (_, faulty, text, message) => {
    expect(() => mutated(faulty, text)).toThrow(message);
  });
});
