import { execFileSync } from "node:child_process";
import { EngineError } from "../engine/index.ts";

/** What hooks of git set: it would make git look at another repository, or at the index of a commit in the making. */
const OF_ANOTHER_CALL = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"];

/** Largest answer of git, in bytes: paths and ids are all that is asked for. */
const ANSWER_MAX = 1_000_000;

/**
 * Runs git to its end, so that nothing of it goes on when this process is stopped. Never through a shell.
 * @param env all settings, of which it does not get what an outer git has set
 * @param own added to them
 * @returns its output without the newline at its end
 * @throws EngineError (`git`) with what git says, or where there is no git
 */
export function git(
  folder: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  own: NodeJS.ProcessEnv = {},
): string {
  const given = Object.fromEntries(Object.entries(env).filter(([name]) => !OF_ANOTHER_CALL.includes(name)));
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
