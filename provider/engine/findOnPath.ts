import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** The path of a command in one of the folders of PATH; undefined where none has it. */
export function findOnPath(command: string, env: NodeJS.ProcessEnv): string | undefined {
  const endings = process.platform === "win32" ? [".exe", ".cmd"] : [""];
  for (const folder of (env.PATH ?? "").split(delimiter).filter((entry) => entry !== "")) {
    for (const ending of endings) {
      const path = join(folder, command + ending);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // Not in this folder: the next one is tried.
      }
    }
  }
  return undefined;
}
