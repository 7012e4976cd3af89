import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Creates a folder, and removes it when the calling test ends. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
