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

/** The folders from the program's up to the root, relative to the root, which is the empty one. */
function foldersUp(program: string): string[] {
  const parent = dirname(program);
  return program === "" ? [""] : [program, ...foldersUp(parent === "." ? "" : parent)];
}

/**
 * Makes the packages that are installed in the working folder available in a checkout. Packages of the repository itself
 * (workspaces), which are installed as links, become links to the checkout's own files: otherwise both revisions would run
 * with the same files of them.
 * @throws EngineError (`git`) where links of the revision lead out of the checkout
 */
export function linkDependencies({ root: given, program }: Repository, checkout: string): void {
  const root = realpathSync(given);
  const done = new Set<string>();
  /** @param folder relative to the root */
  const linkFolder = (folder: string): void => {
    if (done.has(folder)) return;
    done.add(folder);
    const [installed, target] = [join(root, folder, MODULES), join(checkout, folder, MODULES)];
    if (!isFolder(installed) || isThere(target)) return;
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
    const way = within(root, real);
    const own = way?.split(sep).includes(MODULES) ? undefined : way;
    const source = own === undefined ? real : join(checkout, own);
    // The revision does not have this package of the repository.
    if (!existsSync(source)) return;
    symlinkSync(source, place, "junction");
    if (own !== undefined) linkFolder(own);
  };
  for (const folder of foldersUp(program)) linkFolder(folder);
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** True also for a link that leads nowhere. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

const LOCKS = [
  ...["package-lock.json", "npm-shrinkwrap.json", "yarn.lock"],
  ...["pnpm-lock.yaml", "bun.lock", "bun.lockb"],
];

const SECTIONS = [
  ...["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"],
  ...["overrides", "resolutions", "pnpm", "workspaces"],
];

/** Files by which a checkout asks for other packages than the working folder, relative to the root. */
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
    whole = parseJson(text);
  } catch {
    // A file that is no JSON is compared as it stands.
    return text;
  }
  if (typeof whole !== "object" || whole === null) return text;
  return Object.fromEntries(Object.entries(whole).filter(([name]) => SECTIONS.includes(name)));
}
