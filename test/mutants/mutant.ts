import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** A change that breaks one guard. At least one of the tests must fail with this change. */
export interface Mutant {
  /** The behavior of the guard, as a sentence. */
  readonly guard: string;
  /** Path of the source file, from the root of the repository. */
  readonly file: string;
  /** A text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Paths of test files that import the sources. */
  readonly tests: readonly string[];
  /** A part of the names of the tests to run. @default all tests of the files */
  readonly name?: string;
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

type Change = Pick<Mutant, "guard" | "find" | "replace" | "name">;

/** Returns the mutants of one file that the same test files kill. */
export const mutantsOf = (file: string, tests: readonly string[], changes: readonly Change[]): Mutant[] =>
  changes.map((change) => ({ file, tests, ...change }));
