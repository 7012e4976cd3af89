import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import {
  type AttachedProvider,
  hasTerraform,
  LABEL,
  RootModule,
  startProvider,
} from "./support/terraform.ts";

describe.runIf(hasTerraform)(`a plan of ${LABEL}`, () => {
  let fleet: Fleet;
  let provider: AttachedProvider;
  let root: RootModule;
  let planFile: string;
  beforeAll(async () => {
    fleet = await startFleet();
    provider = await startProvider(fleet.env);
    for (const name of ["edge-01", "edge-02"]) await fleet.enrol(name);
  });
  beforeEach(() => {
    root = new RootModule(testFolder(), { ...provider.env, ...fleet.env });
    planFile = join(root.folder, "plan.json");
  });
  afterAll(async () => {
    await provider.stop();
    await fleet.stop();
  });

  const line = sshKeyLine("ana");
  const estate = (username: string, rule?: object) => ({
    resource: {
      gatehouse_public_key: { ana: { name: "ana", data: line, username, filter: { hostname: "^edge-01$" } } },
      ...(rule && { gatehouse_firewall_rule: { office: rule } }),
    },
  });
  const deny = {
    action: "deny",
    priority: 1,
    source_ip: ".*",
    username: "^root$",
    filter: { hostname: ".*" },
  };
  const plan = async (configuration: object, ...flags: readonly string[]) => {
    root.write({ ...configuration });
    writeFileSync(planFile, JSON.stringify(await root.plan(...flags)));
  };
  const ask = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await gatehouse([...args, "--terraform", planFile], fleet.env);
    return { code, stdout, stderr };
  };

  it("is reviewed, asked for access and tested before it is applied, and drift is found by it", async () => {
    await plan(estate("^root$"));
    const review = await ask("review", root.folder);
    console.log(review.stdout, review.stderr);
    const access = await ask("access", "--folder", root.folder);
    console.log(access.stdout, access.stderr);
    await root.must("apply", "plan");
    await plan(estate("^(root|ana)$", deny));
    const second = await ask("review", root.folder, "--json");
    console.log(second.stdout, second.stderr);
    await root.must("apply", "plan");
    const [key] = await fleet.client.getPublicKeys();
    await fleet.client.updatePublicKey({
      params: { fingerprint: key?.fingerprint ?? "" },
      body: { name: "ana", username: ".*", filter: { hostname: ".*" } },
    });
    await fleet.client.createPublicKey({
      body: {
        name: "by hand",
        data: Buffer.from(sshKeyLine()).toString("base64"),
        username: ".*",
        filter: { hostname: ".*" },
      },
    });
    await plan(estate("^(root|ana)$", deny));
    const drift = await ask("drift", root.folder);
    console.log(drift.code, drift.stdout, drift.stderr);
    await plan(estate("^(root|ana)$", deny), "-refresh-only");
    const again = await ask("drift", root.folder);
    console.log(again.code, again.stdout, again.stderr);
  });
});
