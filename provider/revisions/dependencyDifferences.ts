import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { foldersUp } from "./dependencies.ts";
import type { Repository } from "./repository.ts";

const LOCKS = [
  "package-lock.json",
  "npm-shrinkwrap.json",
  "yarn.lock",
  "pnpm-lock.yaml",
  "bun.lock",
  "bun.lockb",
];

/** What of package.json says which packages are installed. */
const SECTIONS = [
  ...["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"],
  ...["overrides", "resolutions", "pnpm", "workspaces"],
];

/** Files that ask for other packages in a checkout than in the working folder, relative to the root. */
export function dependencyDifferences({ root, program }: Repository, checkout: string): string[] {
  const differs = (file: string, read: (path: string) => unknown) =>
    !isDeepStrictEqual(read(join(root, file)), read(join(checkout, file)));
  return foldersUp(program).flatMap((folder) => [
    ...LOCKS.map((name) => join(folder, name)).filter((file) => differs(file, textOf)),
    ...[join(folder, "package.json")].filter((file) => differs(file, dependenciesOf)),
  ]);
}

const textOf = (path: string): string | undefined =>
  existsSync(path) ? readFileSync(path, "utf8") : undefined;

function dependenciesOf(path: string): unknown {
  const text = textOf(path);
  if (text === undefined) return undefined;
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    // What nobody can read is compared as it stands.
    return text;
  }
  if (typeof whole !== "object" || whole === null) return text;
  return Object.fromEntries(Object.entries(whole).filter(([name]) => SECTIONS.includes(name)));
}
