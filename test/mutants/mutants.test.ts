import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mutated, ROOT, readSource } from "./mutant.ts";
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
    const missing = mutants.flatMap(({ guard, tests, name = "" }) => {
      const files = tests.filter((file) => existsSync(join(ROOT, file)));
      const isNamed = files.some((file) => readFileSync(join(ROOT, file), "utf8").includes(name));
      return files.length === tests.length && isNamed ? [] : [guard];
    });
    expect(missing).toEqual([]);
  });

  it("are about different guards", () => {
    const guards = mutants.map(({ guard }) => guard);
    expect(guards.filter((guard, index) => guards.indexOf(guard) !== index)).toEqual([]);
  });
});

describe("a mutant", () => {
  const mutant = { guard: "", file: "a.ts", find: "b", replace: "c", tests: [] };

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
