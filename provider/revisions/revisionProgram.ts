import { constants, copyFileSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { EngineError, readProject, stackFilePath } from "../engine/index.ts";
import { dependencyDifferences, linkDependencies } from "./dependencies.ts";
import { checkOut, type Repository, requireInside } from "./repository.ts";

export interface RevisionProgram {
  readonly folder: string;
  /** Why its preview may differ from one that was made when the revision was, as sentences. */
  readonly unknown: readonly string[];
}

/**
 * Makes the program of a revision ready in a new folder: its files, the packages that are installed in the working
 * folder, and the stack's settings from there where the revision has none.
 * @param root the new folder, for all of the repository; absolute, and the folder above it must be this user's alone
 * @throws EngineError (`git`), ProjectError
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
      `${repository.program} is not part of it. A program that is new is reviewed without --base.`,
    );
  }
  requireInside(root, folder);
  linkDependencies(repository, root);
  await copyStackFile(repository, folder, { root, stack });
  const unknown: string[] = [];
  const differing = dependencyDifferences(repository, root);
  if (differing.length > 0) {
    unknown.push(
      `${differing.join(", ")}: ${name} asks for other packages than the working folder, whose installed ones are used for it`,
    );
  }
  // Git has left their folders empty.
  if (existsSync(join(root, ".gitmodules"))) {
    unknown.push(`the submodules of ${name} are left out: of a program that reads them nobody can tell`);
  }
  return { folder, unknown };
}

/** Git often ignores the settings of stacks that only some machines have. */
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

/** Keys of a stack's configuration by which two revisions are about different services or namespaces. */
export const serviceDifferences = (
  was: ReadonlyMap<string, string>,
  is: ReadonlyMap<string, string>,
): string[] => ["gatehouse:url", "gatehouse:tenant"].filter((key) => was.get(key) !== is.get(key));
