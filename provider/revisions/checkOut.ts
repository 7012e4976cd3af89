import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { devNull } from "node:os";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { EngineError } from "../engine/index.ts";
import { git, type Repository } from "./repository.ts";

/** Turns off settings of the user by which git would write to the repository, run other programs, or leave files out. */
const PLAIN = [
  ...["core.splitIndex=false", "core.fsmonitor=false", "core.sparseCheckout=false"],
  `core.hooksPath=${devNull}`,
].flatMap((setting) => ["-c", setting]);

/**
 * Writes all files of a commit into a new folder, as git would check them out. The folder gets an index of its own beside
 * it, so that the repository, its index and its list of work trees stay as they are, however this process ends.
 * @param commit its id
 * @param folder absolute; the folder above it must be there, and be this user's alone
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

/** True where the commit has submodules, whose folders git has left empty. */
export const hasSubmodules = (checkout: string): boolean => existsSync(join(checkout, ".gitmodules"));

/**
 * Makes sure that a file or folder that is about to be written is part of a checkout.
 * @throws EngineError (`git`) where links of the revision, or `..`, lead out of the checkout
 */
export function requireInside(checkout: string, folder: string): void {
  if (within(realpathSync(checkout), realpathSync(existing(folder))) === undefined) {
    throw new EngineError("git", `${relative(checkout, folder)} leads out of the revision's files.`);
  }
}

/** A path relative to the folder that it is in; undefined where it is not in it. */
export function within(folder: string, path: string): string | undefined {
  const way = relative(folder, path);
  return isAbsolute(way) || way.split(sep)[0] === ".." ? undefined : way;
}

const existing = (folder: string): string => (existsSync(folder) ? folder : existing(dirname(folder)));
