import {
  type Dirent,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";
import { requireInside, within } from "./checkOut.ts";
import type { Repository } from "./repository.ts";

const MODULES = "node_modules";

/** The folders from the program's up to the root, relative to that; the root is the empty one. */
export function foldersUp(program: string): string[] {
  const parent = dirname(program);
  return program === "" ? [""] : [program, ...foldersUp(parent === "." ? "" : parent)];
}

/**
 * Makes what is installed in the working folder available in a checkout: for the program, and for the packages of the
 * repository itself (workspaces) that are installed as links. Of those the checkout's own files are meant, or else both
 * revisions would run with one of them.
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
    // A package of the repository that is not part of the revision is not there for it.
    if (!existsSync(meant)) return;
    symlinkSync(meant, place, "junction");
    if (own !== undefined) this.link(own);
  }
}

const isScope = (entry: Dirent): boolean => entry.name.startsWith("@") && entry.isDirectory();

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** True of a link that leads nowhere, too. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
