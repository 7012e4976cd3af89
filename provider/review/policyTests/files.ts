import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The folder beside Pulumi.yaml where policy tests may be too. */
const FOLDER = "policy";
/** What names of policy tests end in: the forms of modules that Node.js loads. */
const ENDINGS = ["ts", "mts", "cts", "js", "mjs", "cjs"].map((ending) => `.policy.${ending}`);

/**
 * The policy tests of a program, relative to its folder: `*.policy.ts` in it and in `policy/` (and `.mts`, `.js`,
 * `.mjs`, `.cjs`; of `.cts` it is said that it cannot be), in the order of their names.
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
