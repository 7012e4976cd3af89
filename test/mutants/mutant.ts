import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** A change that breaks one guard. At least one test must fail with this change. */
export interface Mutant {
  /** The behavior of the guard, as a sentence. */
  readonly guard: string;
  /** Path of the source file, from the root of the repository. */
  readonly file: string;
  /** A text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Path of a test file that imports the sources. */
  readonly test: string;
  /** A part of the names of the tests to run. @default all tests of the file */
  readonly name?: string | undefined;
}

/**
 * Applies a mutant to the text of its file.
 * @throws Error if `find` does not occur exactly once, or if the replacement changes nothing
 */
export function mutated({ file, find, replace }: Mutant, text: string): string {
  const [before = "", after, ...more] = text.split(find);
  if (find === "" || after === undefined || more.length > 0) {
    const count = find === "" || after === undefined ? 0 : more.length + 1;
    throw new Error(`${file}: the text to replace must occur once, and occurs ${count} times: ${find}`);
  }
  if (find === replace) throw new Error(`${file}: the replacement changes nothing: ${find}`);
  return before + replace + after;
}

export const readSource = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** A change of a source in the notation of `git diff --word-diff`: `[-removed-]` and `{+added+}`, with the text around. */
const MARKED = /\[-(.*?)-\]|\{\+(.*?)\+\}/gs;

type WordDiff = string;

/**
 * Returns the mutants of a table: the changes by source file, by test, and by guard. The test is the path of a test
 * file. A part of the names of the tests to run can follow: `test/a.test.ts > rejects`.
 */
export function mutantsOf(
  table: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, WordDiff>>>>>>,
): Mutant[] {
  return Object.entries(table).flatMap(([file, byTest]) =>
    Object.entries(byTest).flatMap(([test, changes]) => {
      const [path = "", name] = test.split(" > ");
      return Object.entries(changes).map(([guard, change]) => ({
        guard,
        file,
        find: change.replaceAll(MARKED, "$1"),
        replace: change.replaceAll(MARKED, "$2"),
        test: path,
        name,
      }));
    }),
  );
}
