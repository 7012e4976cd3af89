import {
  type Dirent,
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
import { requireInside, within } from "./checkOut.ts";
import type { Repository } from "./repository.ts";

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
export function linkDependencies({ root, program }: Repository, checkout: string): void {
  const linker = new Linker(realpathSync(root), checkout);
  for (const folder of foldersUp(program)) linker.link(folder);
}

class Linker {
  readonly #root: string;
  readonly #checkout: string;
  readonly #done = new Set<string>();

  constructor(root: string, checkout: string) {
    this.#root = root;
    this.#checkout = checkout;
  }

  /** @param folder relative to the root */
  link(folder: string): void {
    if (this.#done.has(folder)) return;
    this.#done.add(folder);
    const [installed, target] = [join(this.#root, folder, MODULES), join(this.#checkout, folder, MODULES)];
    if (!isFolder(installed) || isThere(target)) return;
    requireInside(this.#checkout, target);
    this.#linkAll(installed, target);
  }

  #linkAll(installed: string, target: string): void {
    mkdirSync(target);
    for (const entry of readdirSync(installed, { withFileTypes: true })) {
      const [path, place] = [join(installed, entry.name), join(target, entry.name)];
      if (isScope(entry)) this.#linkAll(path, place);
      else if (isFolder(path)) this.#linkOne(realpathSync(path), place);
    }
  }

  #linkOne(real: string, place: string): void {
    const way = within(this.#root, real);
    const own = way?.split(sep).includes(MODULES) ? undefined : way;
    const meant = own === undefined ? real : join(this.#checkout, own);
    // The revision has not this package of the repository.
    if (!existsSync(meant)) return;
    symlinkSync(meant, place, "junction");
    if (own !== undefined) this.link(own);
  }
}

const isScope = (entry: Dirent): boolean => entry.name.startsWith("@") && entry.isDirectory();

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** True also for a link that leads nowhere. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

const LOCKS = [
  "package-lock.json",
  "npm-shrinkwrap.json",
  "yarn.lock",
  "pnpm-lock.yaml",
  "bun.lock",
  "bun.lockb",
];

/** Sections of package.json that decide which packages are installed. */
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
