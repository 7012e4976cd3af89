import { execFileSync } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..", "..");

/** Builds the changed code before the tests, which start processes that run the build. */
export default function setup(): void {
  const run = (...args: readonly string[]) =>
    execFileSync(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  run(join(ROOT, "node_modules", "typescript-7", "bin", "tsc"), "-b");
  run(join(ROOT, "scripts", "release", "bundle.ts"));
}
