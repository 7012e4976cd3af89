import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The folder beside Pulumi.yaml that may have policy tests too. */
const FOLDER = "policy";
/** The endings of their names: all forms of modules that Node.js loads. */
const ENDINGS = ["ts", "mts", "cts", "js", "mjs", "cjs"].map((ending) => `.policy.${ending}`);

/**
 * The policy tests of a program, relative to its folder and in the order of their names: `*.policy.ts` in it and in
 * `policy/`, also `.mts`, `.js`, `.mjs` and `.cjs`. A `.cts` is among them so that loading it can tell that it is no test.
 * @throws Error when the folder cannot be read
 */
export async function policyTestFiles(folder: string): Promise<string[]> {
  const [own, below] = await Promise.all([
    readdir(folder, { withFileTypes: true }),
    readdir(join(folder, FOLDER), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
      throw error;
    }),
  ]);
  const isTest = (entry: { readonly name: string; isDirectory(): boolean }) =>
    !entry.isDirectory() && ENDINGS.some((ending) => entry.name.endsWith(ending));
  return [
    ...own.filter(isTest).map(({ name }) => name),
    ...below.filter(isTest).map(({ name }) => `${FOLDER}/${name}`),
  ].sort();
}
