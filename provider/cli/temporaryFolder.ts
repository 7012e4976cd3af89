import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { constants, homedir } from "node:os";
import { join } from "node:path";
import { ENDING_SIGNALS } from "../engine/index.ts";

/** A new folder that only this user can look into. */
export interface TemporaryFolder {
  readonly path: string;
  /** Removes it, with all that is in it. */
  remove(): void;
}

/**
 * Makes a folder. It is removed also when this process ends before its maker removes it, by itself or by a signal that
 * can be caught; until the folder is removed, such a signal ends the process at once.
 */
export function temporaryFolder(env: NodeJS.ProcessEnv): TemporaryFolder {
  // Not below a folder where all users may write: Node looks for packages in all folders above.
  const above = join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "gatehouse");
  mkdirSync(above, { recursive: true, mode: 0o700 });
  const path = mkdtempSync(join(realpathSync(above), "review-"));
  // With retries: programs that are being ended may still write to it.
  const removeFiles = () => rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  const leave = (name: (typeof ENDING_SIGNALS)[number]) => process.exit(128 + constants.signals[name]);
  process.on("exit", removeFiles);
  for (const name of ENDING_SIGNALS) process.on(name, leave);
  return {
    path,
    remove() {
      process.off("exit", removeFiles);
      for (const name of ENDING_SIGNALS) process.off(name, leave);
      removeFiles();
    },
  };
}
