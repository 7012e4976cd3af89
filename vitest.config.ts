import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Tests start real server and Pulumi processes; more files at once than cores only makes them wait.
    maxWorkers: 2,
    reporters: ["default"],
  },
});
