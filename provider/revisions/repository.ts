import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { devNull } from "node:os";
import { dirname, isAbsolute, relative, sep } from "node:path";
import { EngineError } from "../engine/index.ts";

export interface Repository {
  readonly root: string;
  readonly gitFolder: string;
  /** The program's folder, relative to the root; empty where it is the root. */
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Finds the repository of a program. @throws EngineError (`git`) if its folder is in none that git trusts */
export function openRepository(folder: string, env: NodeJS.ProcessEnv = process.env): Repository {
  const ask = (what: string) => {
    try {
      return git(folder, ["rev-parse", what], env);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new EngineError("git", `${folder} is not in a git repository: ${error.message}`, {
        cause: error,
      });
    }
  };
  return {
    root: ask("--show-toplevel"),
    gitFolder: ask("--absolute-git-dir"),
    program: ask("--show-prefix").replace(/\/$/, ""),
    env,
  };
}

/** The id of the commit that a flag names. @throws EngineError (`usage`) if there is none */
export function commitOf({ root, env }: Repository, name: string, flag: string): string {
  if (name === "" || name.startsWith("-")) {
    throw new EngineError("usage", `${flag} is a commit, branch or tag, not ${JSON.stringify(name)}.`);
  }
  try {
    return git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`], env);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(
      "usage",
      `${flag}: git knows no commit ${JSON.stringify(name)}. Fetch it first: the clone of a CI job often has the newest ` +
        `commit alone.${error.message.startsWith("Command failed") ? "" : ` (${error.message})`}`,
      { cause: error },
    );
  }
}

/**
 * Variables that git sets for its hooks. With them git would look at another repository, or at the index of a commit in
 * the making.
 */
const OF_HOOKS = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"];

/** Largest answer of git, in bytes: it is asked for paths and ids alone. */
const ANSWER_MAX = 1_000_000;

/**
 * Runs git, never through a shell, and waits for its end: so git does not go on when this process is stopped.
 * @param env the environment; variables that git sets for hooks are left out
 * @param own variables to add
 * @returns its output without the newline at its end
 * @throws EngineError (`git`) with what git says, or where there is no git
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
      maxBuffer: ANSWER_MAX,
      stdio: ["ignore", "pipe", "pipe"],
    }).replace(/\r?\n$/, "");
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === "ENOENT") {
      throw new EngineError("git", "There is no git on the PATH; it is needed to compare revisions.");
    }
    throw new EngineError("git", stderr?.trim() || (error as Error).message, { cause: error });
  }
}

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
