import { join } from "node:path";
import { defineConfig } from "vitest/config";

// Tests start hundreds of processes of the same few programs; Node need not compile them each time.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules", ".cache", "node");

const server = "test/server/**/*.test.ts";
const test = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

/** What the service does, it does on both databases: its tests run twice. */
export default defineConfig({
  test: {
    // Tests start real server and Pulumi processes; more files at once than cores only makes them wait.
    maxWorkers: 2,
    reporters: ["default"],
    projects: [
      { test: { ...test, name: "main", include: ["test/**/*.test.ts"], exclude: [server] } },
      { test: { ...test, name: "sqlite", include: [server], exclude: ["test/server/postgresql/**"] } },
      {
        test: {
          ...test,
          name: "postgresql",
          include: [server],
          exclude: ["test/server/sqlite/**"],
          globalSetup: "test/support/postgresql/globalSetup.ts",
          setupFiles: "test/support/postgresql/setup.ts",
        },
      },
    ],
  },
});
