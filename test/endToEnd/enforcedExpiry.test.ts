import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { changeKey, createKey, fingerprintOf } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { testProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";

const fleet = sharedFleet();

// The long test runs three commands. test/provider/expiry.test.ts covers the setting.
it("--require-enforced-expiry fails the preview and the review on a server of others", {
  tags: ["long"],
}, async () => {
  const sparse = await startSparseService(fleet.env.GATEHOUSE_URL ?? "");
  onTestFinished(() => sparse.stop());
  const stack = testProgram().stack({ env: { ...fleet.env, GATEHOUSE_URL: sparse.url } });
  const end = { expiresAt: "2100-01-01T00:00:00Z" };
  const env = policyEnv({ temp: publicKey("temp", "^root$", { hostname: ".*" }, end) });
  const noticed = await stack.run(["preview", "--create"], env);
  expect([noticed.code, noticed.stdout]).toEqual([
    0,
    expect.stringContaining("this server does not end access"),
  ]);
  for (const command of ["preview", "review"]) {
    const refused = await stack.run([command, "--create", "--require-enforced-expiry"], env);
    expect(refused.code, refused.stdout + refused.stderr).toBe(1);
    expect(refused.stdout + refused.stderr).toContain("unsupported_by_server");
  }
});

it("import writes the end of a key, and omits an expired key with the reason", async () => {
  for (const name of ["live", "over"]) await createKey(fleet.client, name, "^root$");
  await changeKey(fleet.client, "live", { expiresAt: "2100-01-01T00:00:00Z" });
  await changeKey(fleet.client, "over", { expiresAt: "2020-01-01T00:00:00Z" });
  const fingerprint = await fingerprintOf(fleet.client, "over");
  const out = join(testFolder(), "policy");
  const imported = await gatehouse(["import", "--out", out, "--state", "none"], fleet.env);
  expect([imported.code, imported.stderr]).toEqual([
    0,
    expect.stringContaining(`PublicKey over (${fleet.tenant}/${fingerprint}) is omitted: it has expired`),
  ]);
  const text = readFileSync(join(out, "keys.ts"), "utf8");
  expect(text).toContain('expiresAt: "2100-01-01T00:00:00.000Z"');
  expect(text).not.toContain("over");
});
