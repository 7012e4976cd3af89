/**
 * Slow: the runs are processes. test/engine/run.test.ts runs an ES module in short runs.
 *
 * @module-tag long
 */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { testFolder } from "../support/folder.ts";
import { describeEngines, Stack } from "../support/gatehouse.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const PROGRAM = fileURLToPath(new URL("./fixtures/esm", import.meta.url));

describeEngines("an ES module program", {}, (engine) => {
  const fleet = sharedFleet();
  it("imports the package, and returns its outputs", { timeout: 120_000 }, async () => {
    const env = { ...fleet.env, NAMESPACE_NAME: "esm", KEY_LINE: sshKeyLine("me@here") };
    const stack = new Stack({ program: PROGRAM, folder: testFolder(), engine, env, spawned: true });
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
