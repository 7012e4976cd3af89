import { constants, copyFileSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { EngineError, readProject, stackFilePath } from "../engine/index.ts";
import { dependencyDifferences, linkDependencies } from "./dependencies.ts";
import { checkOut, type Repository, requireInside } from "./repository.ts";

interface RevisionProgram {
  readonly folder: string;
  /**
   * Reasons why this preview may differ from an earlier preview of the same revision, when it was the latest one. The
   * reasons are sentences.
   */
  readonly unknown: readonly string[];
}

/**
 * Prepares the program of a revision in a new directory. Copies the files of the revision, and links the packages that
 * are installed in the working directory. If the revision has no settings of the stack, copies them from the working
 * directory.
 * @param root absolute path of the new directory for the whole repository; its parent directory must be accessible only
 *   to this user
 * @throws EngineError (`git`) or ProjectError if the program cannot be prepared
 */
export async function revisionProgram(
  repository: Repository,
  { name, commit }: { readonly name: string; readonly commit: string },
  { root, stack }: { readonly root: string; readonly stack: string },
): Promise<RevisionProgram> {
  checkOut(repository, commit, root);
  const folder = join(root, repository.program);
  if (!existsSync(folder)) {
    throw new EngineError(
      "git",
      `${repository.program} does not exist in this revision. To review a new program, omit --base.`,
    );
  }
  requireInside(root, folder);
  linkDependencies(repository, root);
  await copyStackFile(repository, folder, { root, stack });
  const unknown: string[] = [];
  const differing = dependencyDifferences(repository, root);
  if (differing.length > 0) {
    unknown.push(
      `${differing.join(", ")}: ${name} requires other packages than the working directory; the preview of ${name} uses the installed packages`,
    );
  }
  // Git does not check out the files of submodules.
  if (existsSync(join(root, ".gitmodules"))) {
    unknown.push(
      `the submodules of ${name} are not checked out; a program that reads the submodules may behave differently`,
    );
  }
  return { folder, unknown };
}

/**
 * Copies the stack's settings if the revision does not contain them. Many repositories have the settings of local
 * stacks in `.gitignore`.
 */
async function copyStackFile(
  repository: Repository,
  folder: string,
  { root, stack }: { readonly root: string; readonly stack: string },
): Promise<void> {
  const own = stackFilePath(await readProject(join(repository.root, repository.program)), stack);
  const target = stackFilePath(await readProject(folder), stack);
  requireInside(root, target);
  if (existsSync(target) || !existsSync(own)) return;
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(own, target, constants.COPYFILE_EXCL);
}

/** Returns `gatehouse:url` and `gatehouse:tenant` if their values differ between two revisions. */
export const serviceDifferences = (
  was: ReadonlyMap<string, string>,
  is: ReadonlyMap<string, string>,
): string[] => ["gatehouse:url", "gatehouse:tenant"].filter((key) => was.get(key) !== is.get(key));
