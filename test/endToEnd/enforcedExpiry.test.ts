import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { startSparseService } from "../support/sparseService.ts";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.stop());

it("--require-enforced-expiry fails the preview and the review on a server of others", async () => {
  const sparse = await startSparseService(fleet.env.GATEHOUSE_URL ?? "");
  const program = new PolicyProgram();
  try {
    const stack = program.stack({ engine: "embedded", env: { ...fleet.env, GATEHOUSE_URL: sparse.url } });
    const key = publicKey("temp", "^root$");
    const env = policyEnv({ temp: { ...key, args: { ...key.args, expiresAt: "2100-01-01T00:00:00Z" } } });
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
  } finally {
    program.remove();
    await sparse.stop();
  }
});

it("import writes the end of a key, and omits an expired key with the reason", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-import-"));
  try {
    const created = await Promise.all(
      ["live", "over"].map((name) => {
        const data = Buffer.from(sshKeyLine()).toString("base64");
        const body = { data, name, username: "^root$", filter: { hostname: ".*" } };
        return fleet.client.createPublicKey({ body: { ...body, expiresAt: "2100-01-01T00:00:00Z" } });
      }),
    );
    const { fingerprint = "", name = "", username = "", filter = {} } = created[1] ?? {};
    const body = { name, username, filter, expiresAt: "2020-01-01T00:00:00Z" };
    await fleet.client.updatePublicKey({ params: { fingerprint }, body });
    const out = join(folder, "policy");
    const imported = await gatehouse(["import", "--out", out, "--state", "none"], fleet.env);
    expect([imported.code, imported.stderr]).toEqual([
      0,
      expect.stringContaining(`PublicKey over (${fleet.tenant}/${fingerprint}) is omitted: it has expired`),
    ]);
    const text = readFileSync(join(out, "keys.ts"), "utf8");
    expect(text).toContain('expiresAt: "2100-01-01T00:00:00.000Z"');
    expect(text).not.toContain("over");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
