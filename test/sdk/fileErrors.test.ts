import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileFailureText } from "../../sdk/errors.ts";
import { testFolder } from "../support/folder.ts";

/** Returns the error that a file access throws. */
function failureOf(access: () => unknown): unknown {
  try {
    access();
  } catch (error) {
    return error;
  }
  throw new Error("the access did not fail");
}

test("reports the cause of a file error first, then the remedy", () => {
  const folder = testFolder();
  const missing = join(folder, "none", "x.xml");
  expect(
    fileFailureText(
      "write",
      missing,
      failureOf(() => writeFileSync(missing, "")),
    ),
  ).toBe(`Cannot write ${missing}: the folder does not exist. Create it, or choose another path.`);
  expect(
    fileFailureText(
      "read",
      missing,
      failureOf(() => readFileSync(missing)),
    ),
  ).toBe(`Cannot read ${missing}: it does not exist. Correct the path.`);
  expect(
    fileFailureText(
      "read",
      folder,
      failureOf(() => readFileSync(folder)),
    ),
  ).toBe(`Cannot read ${folder}: it is a folder, not a file. Give the path of a file.`);
});

test("reports the text of an error with an unknown code, or else the code", () => {
  expect(fileFailureText("read", "x", Object.assign(new Error("EIO: i/o error"), { code: "EIO" }))).toBe(
    "Cannot read x: EIO: i/o error.",
  );
  expect(fileFailureText("read", "x", new Error("it ended"))).toBe("Cannot read x: it ended.");
});
