import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { devNull } from "node:os";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { EngineError } from "../engine/index.ts";
import { git } from "./git.ts";
import type { Repository } from "./repository.ts";

/** Settings of the user that would write to the repository, run a program of his, or leave files out. */
const PLAIN = [
  ...["core.splitIndex=false", "core.fsmonitor=false", "core.sparseCheckout=false"],
  `core.hooksPath=${devNull}`,
].flatMap((setting) => ["-c", setting]);

/**
 * Writes all files of a commit into a new folder, as git would check them out, with an index of its own beside it: the
 * repository itself, its index and its list of work trees stay as they are, whatever ends this process.
 * @param commit its id
 * @param folder absolute; what is above it must be there, and be this user's alone
 * @throws EngineError (`git`) with what git says
 */
export function checkOut({ gitFolder, env }: Repository, commit: string, folder: string): void {
  mkdirSync(folder, { mode: 0o700 });
  git(folder, [...PLAIN, "read-tree", "--reset", "-u", "--no-recurse-submodules", commit], env, {
    GIT_DIR: gitFolder,
    GIT_WORK_TREE: folder,
    GIT_INDEX_FILE: `${folder}.index`,
  });
}

/** True where git left folders of submodules empty. */
export const hasSubmodules = (checkout: string): boolean => existsSync(join(checkout, ".gitmodules"));

/**
 * Whether a file or folder of a checkout may be written to.
 * @throws EngineError (`git`) where links of the revision, or ways upwards, lead out of the checkout
 */
export function requireInside(checkout: string, folder: string): void {
  if (within(realpathSync(checkout), realpathSync(existing(folder))) === undefined) {
    throw new EngineError("git", `${relative(checkout, folder)} leads out of the revision's files.`);
  }
}

/** A path from a folder that holds it; undefined where it does not. */
export function within(folder: string, path: string): string | undefined {
  const way = relative(folder, path);
  return isAbsolute(way) || way.split(sep)[0] === ".." ? undefined : way;
}

const existing = (folder: string): string => (existsSync(folder) ? folder : existing(dirname(folder)));
