import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engines, Stack } from "../support/gatehouse.ts";
import { type Policy, policyEnv } from "../support/policy.ts";

const PROGRAM = fileURLToPath(new URL("./fixtures/commonjs", import.meta.url));

// Checks ask no service: none is there, and no namespace is named.
const env = { GATEHOUSE_URL: "http://127.0.0.1:9", GATEHOUSE_USERNAME: "ana", GATEHOUSE_PASSWORD: "horse" };

const policy: Policy = {
  rule: {
    type: "FirewallRule",
    args: { action: "deny", priority: -1, sourceIp: ".*", username: ".*", filter: { tags: ["a b"] } },
  },
  web: { type: "DeviceTags", args: { device: "web-01", tags: ["prod"] } },
  again: { type: "DeviceTags", args: { device: "WEB-01", tags: ["web"] } },
};

describe.each(engines)("a program with refused inputs, by the $label", ({ engine, available }) => {
  let folder: string;
  let stack: Stack;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-refused-"));
    stack = new Stack({ program: PROGRAM, folder, engine, env });
  });
  afterAll(() => {
    stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  it.runIf(available)("is told each field once, with what is allowed", { timeout: 120_000 }, async () => {
    const { code, stdout, stderr } = await stack.run(["preview"], policyEnv(policy));
    expect(code).toBe(1);
    const lines = stdout.split("\n").filter((line) => /priority|filter|device: /.test(line));
    expect(lines).toContainEqual(expect.stringContaining("FirewallRule.priority: must be at least 0"));
    expect(lines).toContainEqual(
      expect.stringContaining("FirewallRule.filter.tags.0: may hold ASCII letters and digits only"),
    );
    expect(lines).toContainEqual(expect.stringMatching(/DeviceTags\.device: /));
    for (const line of lines)
      for (const field of ["priority", "filter", "device:"])
        expect(line.split(field).length, line).toBeLessThan(3);
    expect(stdout + stderr).not.toMatch(/expected|received|Unexpected/);
  });
});
