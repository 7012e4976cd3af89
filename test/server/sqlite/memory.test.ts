import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";

const writes = 4_000;

// The test detects a database adapter that keeps memory for each write or transaction. libsql's adapter kept more than
// 20 kB for each. The test does not measure the whole process, whose memory depends on the machine.
test("memory does not grow with the number of past writes and transactions", {
  timeout: 180_000,
  tags: ["long"],
}, async () => {
  const script = fileURLToPath(new URL("./writeMany.ts", import.meta.url));
  const args = ["--no-warnings", "--expose-gc", script, join(testFolder(), "test.db"), String(writes)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { rows, keptOfEach } = JSON.parse(stdout) as { rows: number; keptOfEach: number };
  expect(rows).toBe(writes);
  expect(keptOfEach).toBeLessThan(10_000);
});
