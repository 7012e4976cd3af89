import { mkdtempSync, readFileSync, rmSync, symlinkSync, mkdirSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { gatehouse } from "../support/gatehouse.ts";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

describe("a program for what is there already", { timeout: 120_000 }, () => {
  let fleet: Fleet;
  let folder: string;
  beforeAll(async () => {
    fleet = await startFleet(["carla", "dave"]);
    const uid = await fleet.enrol("web-01");
    await fleet.client.updateDeviceTags({ params: { uid }, body: { tags: ["prod", "web"] } });
    await fleet.client.inviteMember({ params: { tenant: fleet.tenant }, body: { email: "carla@example.com", role: "operator" } });
    await fleet.client.createApiKey({ body: { name: "pipeline", expiresAt: 30, role: "observer" } });
    for (const [index, name] of ["ana", "it's \"bob\"", "ana", "emoji 🦊\nline"].entries()) {
      await fleet.client.createPublicKey({
        body: { name, data: Buffer.from(sshKeyLine(`k${index}`)).toString("base64"), username: "^(ana|root)$", filter: { tags: ["prod"] } },
      });
    }
    for (let index = 0; index < 14; index += 1) {
      await fleet.client.createFirewallRule({
        body: { action: index % 2 ? "allow" : "deny", active: index !== 3, priority: index, sourceIp: "^10\\.1\\.2\\.3$", username: index % 3 ? ".*" : "^root$", filter: { hostname: ".*" } },
      });
    }
    folder = mkdtempSync(join(tmpdir(), "gatehouse-import-"));
    symlinkSync(MODULES, join(folder, "node_modules"));
    mkdirSync(join(folder, "states"));
  }, 120_000);
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await fleet?.stop();
  });

  it("has an empty preview", async () => {
    const out = join(folder, "prod");
    const env = { ...fleet.env, PULUMI_BACKEND_URL: `file://${join(folder, "states")}`, PULUMI_CONFIG_PASSPHRASE: "x" };
    const run = await gatehouse(["import", "--tenant", "admin", "--out", out, "--stack", "prod"], env);
    console.log(run.code, run.stdout, run.stderr);
    for (const file of readdirSync(out)) if (!file.endsWith(".yaml2")) console.log(`=== ${file}\n${readFileSync(join(out, file), "utf8")}`);
    const yaml = await gatehouse(["import", "--tenant", "admin", "--out", join(folder, "yaml"), "--format", "yaml"], env);
    console.log(yaml.stdout, yaml.stderr, readFileSync(join(folder, "yaml", "Pulumi.yaml"), "utf8"));
  });
});
