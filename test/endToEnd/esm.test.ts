import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { engines, Stack } from "../support/gatehouse.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const PROGRAM = fileURLToPath(new URL("./fixtures/esm", import.meta.url));

describe.each(engines)("an ES module program under the $label", ({ engine, available }) => {
  const fleet = sharedFleet();
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-esm-"));
  });
  afterAll(() => folder && rmSync(folder, { recursive: true, force: true }));

  it.runIf(available)("imports the package, and returns its outputs", { timeout: 120_000 }, async () => {
    const env = { ...fleet.env, NAMESPACE_NAME: "esm", KEY_LINE: sshKeyLine("me@here") };
    const stack = new Stack({ program: PROGRAM, folder, engine, env, spawned: true });
    try {
      const result = await stack.result(["up", "--yes", "--skip-preview"]);
      expect(result.outputs.fingerprint).toMatch(/^([0-9a-f]{2}:){15}[0-9a-f]{2}$/);
      const tenant = String(result.outputs.tenant);
      const namespace = await fleet.client.getNamespace({ params: { tenant } });
      expect(namespace.name).toBe("esm");
      const keys = await fleet.client.forTenant(tenant).getPublicKeys();
      expect(keys.map((key) => key.fingerprint)).toEqual([result.outputs.fingerprint]);
      expect((await stack.result(["refresh", "--yes"])).summary.same).toBe(3);
      expect((await stack.result(["destroy", "--yes"])).summary.delete).toBe(3);
    } finally {
      stack.dispose();
    }
  });
});
