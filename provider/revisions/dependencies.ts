import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parseJson } from "@gatehouse-access/sdk/json";
import { type Repository, requireInside, within } from "./repository.ts";

const MODULES = "node_modules";

/**
 * Returns the program's directory and its parent directories up to the repository root. The paths are relative to the
 * root, and the path of the root is an empty string.
 */
function foldersUp(program: string): string[] {
  const parent = dirname(program);
  return program === "" ? [""] : [program, ...foldersUp(parent === "." ? "" : parent)];
}

/**
 * Links the packages that are installed in the working directory into a checkout of a revision. Workspace packages
 * become links to files of the checkout. Otherwise, both revisions would use the workspace packages of the working
 * directory.
 * @throws EngineError (`git`) if links of the revision point outside of the checkout
 */
export function linkDependencies({ root: given, program }: Repository, checkout: string): void {
  const root = realpathSync(given);
  const done = new Set<string>();
  /**
   * Links the packages of one directory.
   * @param folder path of the directory, relative to the root of the repository
   */
  const linkFolder = (folder: string): void => {
    if (done.has(folder)) return;
    done.add(folder);
    const [installed, target] = [join(root, folder, MODULES), join(checkout, folder, MODULES)];
    if (!isFolder(installed) || exists(target)) return;
    requireInside(checkout, target);
    linkAll(installed, target);
  };
  const linkAll = (installed: string, target: string): void => {
    mkdirSync(target);
    for (const entry of readdirSync(installed, { withFileTypes: true })) {
      const [path, place] = [join(installed, entry.name), join(target, entry.name)];
      if (entry.name.startsWith("@") && entry.isDirectory()) linkAll(path, place);
      else if (isFolder(path)) linkPackage(realpathSync(path), place);
    }
  };
  const linkPackage = (real: string, place: string): void => {
    const inner = within(root, real);
    const own = inner?.split(sep).includes(MODULES) ? undefined : inner;
    const source = own === undefined ? real : join(checkout, own);
    // Skips packages of the repository that do not exist in the revision.
    if (!existsSync(source)) return;
    symlinkSync(source, place, "junction");
    if (own !== undefined) linkFolder(own);
  };
  for (const folder of foldersUp(program)) linkFolder(folder);
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** Returns true if a path exists. A dangling link is treated as existing. */
const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

const LOCKS = [
  "package-lock.json",
  "npm-shrinkwrap.json",
  "yarn.lock",
  "pnpm-lock.yaml",
  "bun.lock",
  "bun.lockb",
];

const SECTIONS = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "overrides",
  "resolutions",
  "pnpm",
  "workspaces",
];

/**
 * Returns the lock files and package.json files in which the dependencies of the checkout differ from those of the
 * working directory. The paths are relative to the root.
 */
export function dependencyDifferences({ root, program }: Repository, checkout: string): string[] {
  const differs = (file: string, read: (path: string) => unknown) =>
    !isDeepStrictEqual(read(join(root, file)), read(join(checkout, file)));
  return foldersUp(program).flatMap((folder) => [
    ...LOCKS.map((name) => join(folder, name)).filter((file) => differs(file, fileText)),
    ...[join(folder, "package.json")].filter((file) => differs(file, dependenciesOf)),
  ]);
}

const fileText = (path: string): string | undefined =>
  existsSync(path) ? readFileSync(path, "utf8") : undefined;

function dependenciesOf(path: string): unknown {
  const text = fileText(path);
  if (text === undefined) return undefined;
  let whole: unknown;
  try {
    whole = parseJson(text);
  } catch {
    // A file that is not valid JSON is compared as text.
    return text;
  }
  if (typeof whole !== "object" || whole === null) return text;
  return Object.fromEntries(Object.entries(whole).filter(([name]) => SECTIONS.includes(name)));
}
