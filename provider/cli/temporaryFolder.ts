import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { constants, homedir } from "node:os";
import { join } from "node:path";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A new folder that only this user can look into. It is removed when this process ends, also by a signal that can be
 * caught: such a one ends it at once from here on.
 */
export function temporaryFolder(): string {
  // Not where all users may write: Node looks for packages in the folders above, too.
  const above = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "gatehouse");
  mkdirSync(above, { recursive: true, mode: 0o700 });
  const folder = mkdtempSync(join(realpathSync(above), "review-"));
  // Programs that are still being ended may be writing.
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const name of SIGNALS) process.once(name, () => process.exit(128 + constants.signals[name]));
  return folder;
}
