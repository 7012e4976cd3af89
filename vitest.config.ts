import { join } from "node:path";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { beforeSparse, ofBuilt, onPostgresql, throughPlugin, throughTerraform } from "./test/projects.ts";
import { SHORT_LIVED } from "./test/support/nodeFlags.ts";

// Tests start hundreds of processes of the same few programs; Node need not compile them each time.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules", ".cache", "node");

const source = (path: string) => join(import.meta.dirname, path);

/** The packages' sources, instead of what was built of them last. The longer names first. */
const packages = {
  "@gatehouse-access/sdk/contract": source("sdk/contract/index.ts"),
  "@gatehouse-access/sdk/errors": source("sdk/errors.ts"),
  "@gatehouse-access/sdk/json": source("sdk/json.ts"),
  "@gatehouse-access/sdk/ssh2": source("sdk/ssh2.ts"),
  "@gatehouse-access/sdk/policy": source("sdk/policy/index.ts"),
  "@gatehouse-access/sdk": source("sdk/index.ts"),
  "@gatehouse-access/provider/policy": source("provider/policyTests/written/index.ts"),
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
    // One more than the cores of a small machine: tests wait for processes and answers a part of their time.
    maxWorkers: 3,
    reporters: ["default"],
    setupFiles: ["test/support/properties.ts"],
    testTimeout: 60_000,
    // Hooks install packages, apply programs and remove folders of 50,000 files, also on a slow disk.
    hookTimeout: 300_000,
    // What is waited for comes at once where the machine has time; one second is too short where it has none.
    expect: { poll: { timeout: 20_000 } },
    execArgv: SHORT_LIVED,
    // What is loaded and compiled, is so once for all files. They share its modules, as instances in one process would.
    isolate: false,
    tags: [{ name: "long", description: "Slow by nature, or the same many times: see CONTRIBUTING.md" }],
    projects: [
      project("sources", {
        include: ["test/**/*.test.ts"],
        exclude: [...ofBuilt, "test/server/postgresql/**"],
      }),
      project("processes", { include: ofBuilt, globalSetup: BUILD }),
      project("postgresql", { include: onPostgresql, ...POSTGRESQL }),
      // What ran above, once more: on the other database, before another service, through the plugin, by Terraform.
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
        env: { TEST_FRONT_DOOR: "plugin" },
      }),
      project("again-terraform", {
        include: throughTerraform,
        globalSetup: BUILD,
        env: { TEST_FRONT_DOOR: "terraform" },
      }),
    ],
  },
});
