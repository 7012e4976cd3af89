import { cpSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { typeNameOf } from "../../provider/terraform/types.ts";
import { createKey, startFleet } from "../support/fleet.ts";
import { NEWER } from "../support/ownDefinitions.ts";
import { hasTerraform, LABEL, RootModule, ruleArguments, sharedTerraform } from "./support/terraform.ts";

const EXAMPLES = join(import.meta.dirname, "..", "..", "examples", "terraform");
/** The names of the examples that need a server of version 0.27 or later. */
const NEWER_FILES = NEWER.map((name) => `${typeNameOf({ name }).replace("gatehouse_", "")}.tf`);
const KINDS = ["provider", "resources", "data-sources", "functions"] as const;

describe.runIf(hasTerraform)(`the examples of the reference under ${LABEL}`, () => {
  const fleet = sharedTerraform(() => startFleet(["carla", "dora"]));
  beforeAll(async () => {
    for (const name of ["edge-01", "edge-02", "web-01"]) await fleet.enroll(name);
    await fleet.enroll("gate-old", "02:00:00:00:0a:01");
    // Creates the objects that the data sources of the examples read.
    const { client, tenant } = fleet;
    const uid = await fleet.enroll("lab-01");
    await client.updateDeviceTags({ params: { uid }, body: { tags: ["lab"] } });
    await client.inviteMember({ params: { tenant }, body: { email: "dora@example.com", role: "observer" } });
    await client.createApiKey({ body: { name: "backup", expiresAt: 30 } });
    const issuer = "https://gitlab.example.com";
    const claims = { project_path: "acme/fleet" };
    await client.createTrustedWorkload({
      body: { name: "review", issuer, claims, audience: "gatehouse", role: "observer" },
    });
    await createKey(client, "laptop");
    const { source_ip: sourceIp, ...rule } = ruleArguments({ active: true });
    await client.createFirewallRule({ body: { ...rule, sourceIp } as never });
  });

  /** Writes example files to one root module, with values for the variables of the examples. */
  function moduleOf(kinds: readonly string[], isNewer = false): RootModule {
    const root = fleet.newModule();
    for (const kind of kinds) {
      for (const file of readdirSync(join(EXAMPLES, kind))) {
        if (kind !== "provider" && NEWER_FILES.includes(file) !== isNewer) continue;
        cpSync(join(EXAMPLES, kind, file), join(root.folder, `${kind}-${file}`));
      }
    }
    cpSync(join(EXAMPLES, "keys"), join(root.folder, "keys"), { recursive: true });
    const variables = {
      url: fleet.env.GATEHOUSE_URL,
      pipeline_secret: "3f0f6c1e-6b1d-4a55-9c54-6a7a1d0a9f11",
    };
    writeFileSync(join(root.folder, "terraform.tfvars.json"), JSON.stringify(variables));
    return root;
  }

  it("are applied without changes, and the next plan is empty", async () => {
    const root = moduleOf(KINDS);
    await root.apply();
    expect(await root.changes()).toEqual([]);
    await root.destroy();
    expect(await fleet.client.getPublicKeys()).toHaveLength(1);
  });

  it("are valid if they need a newer server, and their plan reports what the server lacks", async () => {
    const root = moduleOf(["provider", "resources"], true);
    expect(await root.must("validate")).toContain("The configuration is valid");
    const output = await root.rejected("plan");
    for (const lack of ["access policies", "service accounts", "install keys"])
      expect(output).toContain(`has no ${lack}. Use ShellHub 0.27 or later`);
  });

  it("provide a session token as an ephemeral value", async () => {
    const root = moduleOf(["provider", "ephemeral-resources"]);
    writeFileSync(join(root.folder, "use.tf"), 'data "gatehouse_tags" "all" {}\n');
    expect(await root.must("plan")).toContain("Opening complete");
  });

  it("have the format of terraform fmt", async () => {
    const { code, output } = await new RootModule(EXAMPLES, {}).run("fmt", "-check", "-recursive");
    expect([code, output]).toEqual([0, ""]);
  });
});
