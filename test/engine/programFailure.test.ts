import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  failureMessage,
  failuresOf,
  readFailures,
} from "../../provider/engine/embedded/program/programFailure.ts";
import { ConfigurationError } from "../../sdk/errors.ts";
import { testFolder } from "../support/folder.ts";

/** Returns the value that a function throws. */
function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("the function throws no error");
}

const compilerOutput = `index.ts(2,22): error TS2345: Argument of type '{}' is not assignable.
  Property 'name' is missing.
src/lib.ts(3,7): error TS2307: Cannot find module './x'.
error TS5023: Unknown compiler option 'x'.
`;

describe("an error that a program throws", () => {
  it("has the name, unless it is Error, and the positions of the call stack", () => {
    const [failure] = failuresOf(thrownBy(() => (undefined as unknown as { a: number }).a));
    expect(failure).toMatchObject({ cause: "TypeError: Cannot read properties of undefined (reading 'a')" });
    expect(failure?.positions[0]).toMatchObject({ file: import.meta.filename, line: expect.any(Number) });
  });

  it.each<[unknown, string]>([
    [new Error("no directory"), "no directory"],
    [new Error("outer", { cause: new TypeError("inner") }), "outer: TypeError: inner"],
    [new Error("outer inner", { cause: new Error("inner") }), "outer inner"],
    ["a text", "The program threw 'a text'."],
    [undefined, "The program threw undefined."],
  ])("%s has the cause %j", (thrown, cause) => {
    expect(failuresOf(thrown)).toMatchObject([{ cause }]);
  });

  it("of this project's packages keeps its code", () => {
    const error = new ConfigurationError("is not set", { field: ["GATEHOUSE_URL"] });
    expect(failuresOf(error)).toMatchObject([{ code: "configuration", cause: "GATEHOUSE_URL is not set." }]);
  });

  it("is one failure for each error of the compiler", () => {
    const error = Object.assign(new Error("failed"), { diagnosticText: compilerOutput });
    expect(failuresOf(error)).toEqual([
      {
        cause: "Argument of type '{}' is not assignable (TS2345).\n  Property 'name' is missing.",
        positions: [{ file: "index.ts", line: 2, column: 22 }],
      },
      {
        cause: "Cannot find module './x' (TS2307).",
        remedy: "Correct the name, or install the package with npm install.",
        positions: [{ file: "src/lib.ts", line: 3, column: 7 }],
      },
      { cause: "Unknown compiler option 'x' (TS5023).", positions: [] },
    ]);
  });

  it("has the position of a syntax error", () => {
    const path = join(testFolder(), "wrong.cjs");
    writeFileSync(path, "const a = 1;\nconst b = {;\n");
    const error = thrownBy(() => createRequire(path)(path));
    expect(failuresOf(error)).toMatchObject([
      { cause: "SyntaxError: Unexpected token ';'", positions: [{ file: path, line: 2, column: 12 }] },
    ]);
  });

  it("reports a missing module without the list of requiring modules", () => {
    const error = thrownBy(() => createRequire(import.meta.url)("./does-not-exist"));
    expect(failuresOf(error)).toMatchObject([
      { cause: "Cannot find module './does-not-exist'.", remedy: expect.stringContaining("npm install") },
    ]);
  });
});

it("a message with failures contains their data, and other messages contain none", () => {
  const failures = failuresOf(new Error("x"));
  expect(readFailures(failureMessage(failures))).toEqual(failures);
  expect(readFailures("x")).toBeUndefined();
});
