import { join } from "node:path";
import { defineConfig } from "vitest/config";
import all from "../../vitest.config.ts";

const { projects: _projects, ...test } = all.test ?? {};

/** The configuration of the runs with mutants: all test files in one project, without the build. */
export default defineConfig({
  ...all,
  root: join(import.meta.dirname, "../.."),
  test: {
    ...test,
    include: ["test/**/*.test.ts"],
    // A new worker for each test file loads the mutated module.
    isolate: true,
    // The cache would keep mutated modules for other runs.
    fsModuleCache: false,
    maxWorkers: 1,
    // A mutant can make a test wait for an event that never happens.
    testTimeout: 20_000,
    expect: { poll: { timeout: 10_000 } },
  },
});
