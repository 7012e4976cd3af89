import { join } from "node:path";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { beforeSparse, ofBuilt, onPostgresql, throughPlugin, throughTerraform } from "./test/projects.ts";
import { SHORT_LIVED } from "./test/support/nodeFlags.ts";

// Enables the compile cache of Node.js, since the tests start hundreds of processes of the same few programs.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules", ".cache", "node");

const source = (path: string) => join(import.meta.dirname, path);

/**
 * Resolves the packages to their sources instead of the last build. The first name that an import begins with applies,
 * so longer names must precede shorter names.
 */
const packages = {
  "@gatehouse-access/sdk/contract": source("sdk/contract/index.ts"),
  "@gatehouse-access/sdk/dispatcher": source("sdk/dispatcher.ts"),
  "@gatehouse-access/sdk/errors": source("sdk/errors.ts"),
  "@gatehouse-access/sdk/json": source("sdk/json.ts"),
  "@gatehouse-access/sdk/promises": source("sdk/promises.ts"),
  "@gatehouse-access/sdk/proxies": source("sdk/proxies.ts"),
  "@gatehouse-access/sdk/ssh2": source("sdk/ssh2.ts"),
  "@gatehouse-access/sdk/times": source("sdk/times.ts"),
  "@gatehouse-access/sdk/policy": source("sdk/policy/index.ts"),
  "@gatehouse-access/sdk": source("sdk/index.ts"),
  "@gatehouse-access/provider/policy": source("provider/policyTests/api/index.ts"),
  "@gatehouse-access/provider": source("provider/index.ts"),
};

const BUILD = "test/support/build.ts";
const POSTGRESQL = {
  globalSetup: [BUILD, "test/support/postgresql/globalSetup.ts"],
  setupFiles: ["test/support/postgresql/setup.ts"],
};

const project = (
  name: string,
  test: NonNullable<TestProjectInlineConfiguration["test"]>,
): TestProjectInlineConfiguration => ({ extends: true, test: { name, ...test } });

export default defineConfig({
  resolve: { alias: packages },
  test: {
    // The number of workers is one more than the cores of a small machine, since tests often wait for processes and
    // responses.
    maxWorkers: 3,
    reporters: ["default"],
    setupFiles: ["test/support/properties.ts"],
    testTimeout: 60_000,
    // Hooks need a long timeout: they install packages, apply programs and remove folders with 50,000 files, sometimes
    // on a slow disk.
    hookTimeout: 300_000,
    // The default timeout of one second is too short on a busy machine.
    expect: { poll: { timeout: 20_000 } },
    execArgv: SHORT_LIVED,
    // The test files of a worker share modules, so that each module is loaded and compiled only once.
    isolate: false,
    tags: [{ name: "long", description: "Slow or repetitive tests: see CONTRIBUTING.md" }],
    projects: [
      project("sources", {
        include: ["test/**/*.test.ts"],
        exclude: [...ofBuilt, "test/server/postgresql/**"],
      }),
      project("processes", { include: ofBuilt, globalSetup: BUILD }),
      project("postgresql", { include: onPostgresql, ...POSTGRESQL }),
      // The following projects repeat tests: on PostgreSQL, with a service that supports fewer operations, through the
      // plugin, and with Terraform.
      project("again-postgresql", {
        include: ["test/server/**/*.test.ts"],
        exclude: ["test/server/sqlite/**", ...onPostgresql],
        ...POSTGRESQL,
      }),
      project("again-sparse", {
        include: beforeSparse,
        globalSetup: BUILD,
        env: { TEST_SERVICE: "sparse" },
      }),
      project("again-plugin", {
        include: throughPlugin,
        globalSetup: BUILD,
        env: { TEST_FRONT_END: "plugin" },
      }),
      project("again-terraform", {
        include: throughTerraform,
        globalSetup: BUILD,
        env: { TEST_FRONT_END: "terraform" },
      }),
    ],
  },
});
