import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { EngineError } from "../engine/index.ts";

/** The git repository that a program is in. */
export interface Repository {
  /** The repository's working folder. */
  readonly root: string;
  readonly gitFolder: string;
  /** The program's folder, relative to the root; empty where it is the root. */
  readonly program: string;
  /** The environment that git runs with. */
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Finds the repository of a program.
 * @param folder the program's
 * @throws EngineError (`git`) where the folder is in no repository that git trusts
 */
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

/**
 * The id of the commit that a name means.
 * @param flag the flag that has the name, for errors
 * @throws EngineError (`usage`) where it means none
 */
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

/** The program's folder in a copy of the repository. */
export const programIn = ({ program }: Repository, root: string): string => join(root, program);

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
