import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";

const writes = 4_000;

// An adapter that keeps something of each write or transaction shows (libsql's kept more than 20 kB of each); what
// the process as a whole takes depends on the machine.
test("memory does not grow with the writes and transactions that there were", {
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
