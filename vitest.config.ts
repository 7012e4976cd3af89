import { join } from "node:path";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { SHORT_LIVED } from "./test/support/nodeFlags.ts";

// Tests start hundreds of processes of the same few programs; Node need not compile them each time.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules", ".cache", "node");

const source = (path: string) => join(import.meta.dirname, path);

/** The packages' sources, instead of what was built of them last. */
const packages = {
  "@gatehouse-access/sdk/contract": source("sdk/contract/index.ts"),
  "@gatehouse-access/sdk/policy": source("sdk/policy/index.ts"),
  "@gatehouse-access/sdk": source("sdk/index.ts"),
  "@gatehouse-access/provider/policy": source("provider/review/policy/index.ts"),
  "@gatehouse-access/provider": source("provider/index.ts"),
};

/** Tests that start processes of what was built, or read it: it is built before they run. */
const ofBuilt = [
  "test/{endToEnd,engine,packaging,provider,review}/**/*.test.ts",
  "test/server/{pages,runtime}/**/*.test.ts",
  "test/server/sqlite/{backup,restore,fullDisk,secondProcess}.test.ts",
  "test/sdk/service.test.ts",
  "test/docs.test.ts",
];
const postgresql = ["test/server/{postgresql,db}/**/*.test.ts"];

/**
 * What the provider does at a service that sends only what the specification has, and does nothing that only ours does.
 * The other files of test/provider make no request, count those to our service, or bring a service of their own;
 * lostAnswers has a sparse one beside ours, where idempotency keys make a difference.
 */
const sparse = [
  "lifecycle",
  "drift",
  "adoption",
  "tags",
  "apiKeyRotation",
  "movedObjects",
  "deviceSelectors",
  "convergence",
  "membershipEnded",
].map((name) => `test/provider/${name}.test.ts`);

const BUILD = "test/support/build.ts";

const project = (
  name: string,
  test: NonNullable<TestProjectInlineConfiguration["test"]>,
): TestProjectInlineConfiguration => ({ extends: true, test: { name, ...test } });

const onPostgresql = {
  globalSetup: [BUILD, "test/support/postgresql/globalSetup.ts"],
  setupFiles: "test/support/postgresql/setup.ts",
};

export default defineConfig({
  resolve: { alias: packages },
  test: {
    // Tests start real server and Pulumi processes; more files at once than cores only makes them wait.
    maxWorkers: 2,
    reporters: ["default"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is waited for comes at once where the machine has time; one second is too short where it has none.
    expect: { poll: { timeout: 20_000 } },
    execArgv: SHORT_LIVED,
    // What is loaded and compiled, is so once for all files. They share its modules, as instances in one process would.
    isolate: false,
    tags: [{ name: "long", description: "Slow by nature, or many times the same: in test:all alone" }],
    projects: [
      project("sources", {
        include: ["test/**/*.test.ts"],
        exclude: [...ofBuilt, "test/server/postgresql/**"],
      }),
      project("processes", { include: ofBuilt, globalSetup: BUILD }),
      project("postgresql", { include: postgresql, ...onPostgresql }),
      // What ran above, once more with another database or before another service.
      project("again-postgresql", {
        include: ["test/server/**/*.test.ts"],
        exclude: ["test/server/sqlite/**", ...postgresql],
        ...onPostgresql,
      }),
      project("again-sparse", { include: sparse, globalSetup: BUILD, env: { TEST_SERVICE: "sparse" } }),
    ],
  },
});
