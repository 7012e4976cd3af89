import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A new folder that only this user can look into. It is removed when this process ends, also by a signal that can be
 * caught: such a one ends it at once from here on.
 */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "gatehouse-review-"));
  // Programs that are still being ended may be writing.
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const name of SIGNALS) process.once(name, () => process.exit(128 + constants.signals[name]));
  return folder;
}
