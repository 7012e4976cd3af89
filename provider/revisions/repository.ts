import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { devNull } from "node:os";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { EngineError } from "../engine/index.ts";

export interface Repository {
  readonly root: string;
  readonly gitFolder: string;
  /** The program's directory, relative to the root. Empty if the program is in the root directory. */
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Finds the repository of a program.
 * @throws EngineError (`git`) if the directory is not in a repository that git trusts
 */
export function openRepository(folder: string, env: NodeJS.ProcessEnv = process.env): Repository {
  const revParse = (option: string) => {
    try {
      return git(folder, ["rev-parse", option], env);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new EngineError("git", `The folder ${folder} is not in a git repository: ${error.message}`, {
        cause: error,
      });
    }
  };
  return {
    root: revParse("--show-toplevel"),
    gitFolder: revParse("--absolute-git-dir"),
    program: revParse("--show-prefix").replace(/\/$/, ""),
    env,
  };
}

/** Returns the id of the commit that a flag refers to. @throws EngineError (`usage`) if there is no such commit */
export function commitOf({ root, env }: Repository, name: string, flag: string): string {
  if (name === "" || name.startsWith("-")) {
    throw new EngineError("usage", `${flag} must be a commit, branch or tag, not ${JSON.stringify(name)}.`);
  }
  try {
    return git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`], env);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(
      "usage",
      `${flag}: git cannot find the commit ${JSON.stringify(name)}. Fetch the commit first: the clone of a CI job often contains ` +
        `only the newest commit.${error.message.startsWith("Command failed") ? "" : ` (${error.message})`}`,
      { cause: error },
    );
  }
}

/** Returns the checked-out commit, and whether the files in the program's directory differ from the commit. */
export function headOf({ root, program, env }: Repository) {
  const [commit = "", committedAt = ""] = git(root, ["log", "-1", "--format=%H %cI"], env).split(" ");
  const status = [
    "--no-optional-locks",
    ...PLAIN,
    "status",
    "--porcelain",
    "--untracked-files=all",
    "--",
    ".",
  ];
  return { commit, committedAt, hasUncommittedChanges: git(join(root, program), status, env) !== "" };
}

/**
 * Variables that git sets for its hooks. With these variables, git would use a different repository, or the index of an
 * unfinished commit.
 */
const OF_HOOKS = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"];

/** Maximum size of git's output, in bytes. The commands print only paths and ids. */
const OUTPUT_MAX = 1_000_000;

/**
 * Runs git synchronously and without a shell. This process waits for git, so git never runs longer than this process.
 * @param env the environment; variables that git sets for hooks are removed
 * @param own variables to add
 * @returns the output without the trailing newline
 * @throws EngineError (`git`) with the error output of git, or if git is not installed
 */
export function git(
  folder: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  own: NodeJS.ProcessEnv = {},
): string {
  const given = Object.fromEntries(Object.entries(env).filter(([name]) => !OF_HOOKS.includes(name)));
  try {
    return execFileSync("git", ["-C", folder, ...args], {
      env: { ...given, ...own },
      encoding: "utf8",
      maxBuffer: OUTPUT_MAX,
      stdio: ["ignore", "pipe", "pipe"],
    }).replace(/\r?\n$/, "");
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === "ENOENT") {
      throw new EngineError("git", "Cannot find git on the PATH. Install git to compare revisions.");
    }
    throw new EngineError("git", stderr?.trim() || (error as Error).message, { cause: error });
  }
}

/**
 * Options that disable user settings with which git could write to the repository, run other programs, or skip files.
 */
const PLAIN = [
  "core.splitIndex=false",
  "core.fsmonitor=false",
  "core.sparseCheckout=false",
  `core.hooksPath=${devNull}`,
].flatMap((setting) => ["-c", setting]);

/**
 * Checks out all files of a commit into a new directory. Uses a separate index outside of this directory, so that the
 * repository, its index and its list of work trees do not change, even if this process is killed.
 * @param commit id of the commit
 * @param folder absolute path; the parent directory must exist and be accessible only to this user
 * @throws EngineError (`git`) with the error output of git
 */
export function checkOut({ gitFolder, env }: Repository, commit: string, folder: string): void {
  mkdirSync(folder, { mode: 0o700 });
  git(folder, [...PLAIN, "read-tree", "--reset", "-u", "--no-recurse-submodules", commit], env, {
    GIT_DIR: gitFolder,
    GIT_WORK_TREE: folder,
    GIT_INDEX_FILE: `${folder}.index`,
  });
}

/**
 * Checks that a file or directory is inside a checkout, before the caller writes to it.
 * @throws EngineError (`git`) if links of the revision, or `..`, lead outside of the checkout
 */
export function requireInside(checkout: string, folder: string): void {
  if (within(realpathSync(checkout), realpathSync(existing(folder))) === undefined) {
    throw new EngineError(
      "git",
      `The folder ${relative(checkout, folder)} points outside of the revision's files.`,
    );
  }
}

/** Returns a path relative to a directory; undefined if the path is not inside the directory. */
export function within(folder: string, path: string): string | undefined {
  const inner = relative(folder, path);
  return isAbsolute(inner) || inner.split(sep)[0] === ".." ? undefined : inner;
}

const existing = (folder: string): string => (existsSync(folder) ? folder : existing(dirname(folder)));
