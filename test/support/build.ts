import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** The packages are built of the sources as they stand. */
    readonly built: true;
  }
}

const ROOT = join(import.meta.dirname, "..", "..");

/** Builds what has changed since the last build, before tests that start processes of it. */
export default function setup(project: TestProject): void {
  execFileSync(process.execPath, [join(ROOT, "node_modules", "typescript-7", "bin", "tsc"), "-b"], {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
  });
  project.provide("built", true);
}
