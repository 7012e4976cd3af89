import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runCommand } from "../../support/command.ts";
import { newDatabase } from "./clients.ts";

const BENCHMARK = fileURLToPath(new URL("../../../bench/lists.ts", import.meta.url));

// The benchmark runs in a separate process, so that neither other tests nor their memory change its figures. It compares
// CPU times with each other, and never measures a duration.
test("a list of 100 keys costs what docs/operate/benchmarks.md records", {
  timeout: 180_000,
  tags: ["long"],
}, async () => {
  const url = await newDatabase();
  const { code, stdout, stderr } = await runCommand([BENCHMARK, "--database-url", url]);
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^bytes for each row: \d+ /);
  expect(code, stdout).toBe(0);
});
