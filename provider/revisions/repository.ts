import { join } from "node:path";
import { EngineError } from "../engine/index.ts";
import { git } from "./git.ts";

/** The git repository that a program is in. */
export interface Repository {
  /** Its working folder. */
  readonly root: string;
  readonly gitFolder: string;
  /** The program's folder, from the root; empty where it is the root. */
  readonly program: string;
  /** What git runs with. */
  readonly env: NodeJS.ProcessEnv;
}

/** @throws EngineError (`git`) where the folder is in no repository that git trusts */
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
 * @param flag what an error names
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
