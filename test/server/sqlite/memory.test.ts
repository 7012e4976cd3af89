import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";

const writes = 8_000;

// Enough for an adapter that keeps something of each write or transaction to show (libsql's did, by more than
// 20 kB each). `bench/sqlite.ts` does the same with 100,000, which takes a minute.
test("memory stays under 300 MB over thousands of writes and transactions", {
  timeout: 180_000,
}, async () => {
  const script = fileURLToPath(new URL("./writeMany.ts", import.meta.url));
  const args = ["--no-warnings", script, join(testFolder(), "test.db"), String(writes)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { rows, megabytes } = JSON.parse(stdout) as { rows: number; megabytes: number };
  expect(rows).toBe(writes);
  expect(megabytes).toBeLessThan(300);
});
