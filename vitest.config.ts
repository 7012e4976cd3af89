import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { SHORT_LIVED } from "./test/support/nodeFlags.ts";

// Tests start hundreds of processes of the same few programs; Node need not compile them each time.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules", ".cache", "node");

const server = "test/server/**/*.test.ts";
const test = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // What is waited for comes at once where the machine has time; one second is too short where it has none.
  expect: { poll: { timeout: 20_000 } },
};

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

/**
 * These files run the service in their own process, where it is loaded and compiled once for all of them: a fifth less
 * work than a process for each. What they share is the service's modules, as its instances in one process would.
 */
const serverTest = { ...test, include: [server], execArgv: SHORT_LIVED, isolate: false };

/** What the service does, it does on both databases: its tests run twice. */
export default defineConfig({
  test: {
    // Tests start real server and Pulumi processes; more files at once than cores only makes them wait.
    maxWorkers: 2,
    reporters: ["default"],
    projects: [
      { test: { ...test, name: "main", include: ["test/**/*.test.ts"], exclude: [server] } },
      { test: { ...test, name: "sparse", include: sparse, env: { TEST_SERVICE: "sparse" } } },
      { test: { ...serverTest, name: "sqlite", exclude: ["test/server/postgresql/**"] } },
      {
        test: {
          ...serverTest,
          name: "postgresql",
          exclude: ["test/server/sqlite/**"],
          globalSetup: "test/support/postgresql/globalSetup.ts",
          setupFiles: "test/support/postgresql/setup.ts",
        },
      },
    ],
  },
});
