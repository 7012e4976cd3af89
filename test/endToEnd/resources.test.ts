import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { Harness, type Program } from "../provider/support/harness.ts";
import { allResources, CHANGE_STEPS, changedResources, withoutMembers } from "../support/allResources.ts";
import { createKey } from "../support/fleet.ts";
import { changesOf, describeEngines, Stack } from "../support/gatehouse.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { firewallRule, type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { requestsDuring } from "../support/requests.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const PROGRAM = fileURLToPath(new URL("./fixtures/commonjs", import.meta.url));
const PROJECT = "commonjs-program";

const { key: laptop, rule } = allResources;

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}

it("the program contains every resource", () => {
  expect(
    Object.values(allResources)
      .map(({ type }) => type)
      .sort(),
  ).toEqual(ownDefinitions.map(({ name }) => name).sort());
});

/** Arguments of an up without a preview. The preview would double the test's time. */
const UP = ["up", "--yes", "--skip-preview"];

describeEngines("all resources", { timeout: 180_000 }, (engine) => {
  const fleet = sharedFleet(["bob"]);
  let folder: string;
  let stack: Stack;

  beforeAll(async () => {
    for (const name of ["web-01", "web-02", "web-03"]) await fleet.enroll(name);
    await fleet.enroll("gatekeeper", "02:00:00:00:bb:01");
    const uid = await fleet.enroll("anchor-01");
    await fleet.client.updateDeviceTags({ params: { uid }, body: { tags: ["anchor"] } });
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-state-"));
    stack = new Stack({ program: PROGRAM, folder, engine, env: fleet?.env ?? {} });
  });
  afterEach(async () => {
    await fleet.clear("anchor");
    stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  it("are created, changed and removed, without a secret in plaintext", async () => {
    const secretFile = join(mkdtempSync(join(tmpdir(), "gatehouse-secret-")), "secret");
    const outputs: string[] = [];
    const run = async (args: string[], policy: Policy, env: Record<string, string> = {}) => {
      const result = await stack.run(args, { ...policyEnv(policy), SECRET_FILE: secretFile, ...env });
      outputs.push(result.stdout, result.stderr);
      expect(result.code, result.stdout + result.stderr).toBe(0);
    };
    await run(UP, allResources, { LOOKUPS: "1" });
    const { resources } = JSON.parse(stack.stateText(PROJECT)).checkpoint.latest;
    const { outputs: found } = resources.find((one: { type: string }) => one.type === "pulumi:pulumi:Stack");
    // The lookup functions run before the program's changes are applied, so they return the objects that existed before
    // the run.
    expect(found.lookups).toMatchObject({
      devices: ["anchor-01"],
      namespace: fleet.tenant,
      sameByName: fleet.tenant,
      members: ["owner"],
      counts: [0, 0, 0],
      tags: ["anchor"],
    });
    const providers = resources.flatMap((one: { inputs?: { __provider?: string } }) =>
      one.inputs?.__provider === undefined ? [] : [one.inputs.__provider.length],
    );
    expect(providers).not.toEqual([]);
    expect(Math.max(...providers)).toBeLessThanOrEqual(700);
    const secret = readFileSync(secretFile, "utf8").trim();
    expect(secret).toMatch(/^[0-9a-f-]{36}$/);

    const changed = policyEnv(changedResources);
    const planned = changesOf(await stack.result(["preview"], changed));
    expect(planned.map(withoutMembers).sort()).toEqual(CHANGE_STEPS);
    await run(UP, changedResources);
    expect(changesOf(await stack.result(["preview"], changed))).toEqual([]);
    expect(changesOf(await stack.result(["refresh", "--yes"], changed))).toEqual([]);
    const secrets = [secret, readFileSync(secretFile, "utf8").trim()];
    expect(new Set(secrets).size).toBe(2);

    expect(stack.stateText(PROJECT)).toContain('"ciphertext"');
    const written = filesBelow(folder).map((file) => readFileSync(file, "latin1"));
    for (const text of [...written, ...outputs, fleet.service.output()]) {
      for (const value of [...secrets, "correct-horse"]) expect(text.includes(value)).toBe(false);
    }
    const { client } = fleet;
    const other = await createKey(client, "other");
    await run(["destroy", "--yes"], changedResources);
    // A destroy deletes only the objects of its own stack.
    expect((await client.getPublicKeys()).map(({ fingerprint }) => fingerprint)).toEqual([other]);
    await client.deletePublicKey({ params: { fingerprint: other } });
    expect(await client.getFirewallRules()).toEqual([]);
    expect(await client.listApiKeys()).toEqual([]);
    expect(await client.getTags()).toEqual(["anchor"]);
    rmSync(join(secretFile, ".."), { recursive: true });
  });

  // Repeats a case of test/provider/tags.test.ts with a real engine.
  it("a tag is renamed in one step on all objects that carry it, before other changes", {
    tags: ["long"],
  }, async () => {
    const named = (name: string): Policy => ({
      zone: { type: "Tag", args: { name } },
      one: { type: "DeviceTags", args: { device: "web-01", tags: [{ $ref: "zone.name" }, "edge"] } },
      two: { type: "DeviceTagAttachment", args: { device: "web-02", tag: { $ref: "zone.name" } } },
      key: publicKey("laptop", "^root$", { tags: [{ $ref: "zone.name" }] }),
      deny: firewallRule("deny", 1, { filter: { tags: [{ $ref: "zone.name" }] } }),
    });
    await stack.result(UP, policyEnv(named("zone1")));
    // An unmanaged device has the tag too.
    const devices = await fleet.client.getDevices({ query: { perPage: 100 } });
    const { uid = "" } = devices.find((device) => device.name === "web-03") ?? {};
    await fleet.client.updateDeviceTags({ params: { uid }, body: { tags: ["zone1"] } });

    const requests = await requestsDuring(fleet.service, () => stack.result(UP, policyEnv(named("zone2"))));
    const writes = requests.filter((request) => !/^GET |\/api\/login/.test(request));
    expect(writes[0]).toBe("PUT /api/tags/zone1");
    expect(writes.filter((request) => request.startsWith("PUT /api/tags/"))).toHaveLength(1);
    expect((await fleet.client.getDevice({ params: { uid } })).tags).toEqual(["zone2"]);
    expect(await fleet.client.getTags()).toEqual(["anchor", "edge", "zone2"]);
    expect(changesOf(await stack.result(["preview"], policyEnv(named("zone2"))))).toEqual([]);
  });

  // Repeats a case of test/provider/adoption.test.ts with a real engine, and checks the printed output.
  it("a run counts existing objects as adopted, and new objects as created", { tags: ["long"] }, async () => {
    const filter = { hostname: ".*" };
    const declared = (adopt?: true): Policy => ({
      key: { type: "PublicKey", args: { ...laptop?.args, filter, adopt } },
      rule: { type: "FirewallRule", args: { ...rule?.args, filter, adopt } },
    });
    const others = new Stack({ program: PROGRAM, folder, engine, env: fleet.env });
    try {
      await others.result(UP, policyEnv(declared()));
      const more: Policy = { ...declared(true), ci: allResources.ci as Policy[string] };
      const { stdout } = await stack.run(["up", "--yes"], policyEnv(more));
      expect(stdout).toMatch(/^1 created, 2 adopted /m);
      for (const name of ["PublicKey key", "FirewallRule rule"]) {
        expect(stdout).toMatch(new RegExp(`^ = {2}${name}`, "m"));
        expect(stdout).not.toMatch(new RegExp(`^ \\+ {2}${name}$`, "m"));
      }
      expect(changesOf(await stack.result(["preview"], policyEnv(more)))).toEqual([]);
    } finally {
      others.dispose();
    }
  });

  // Repeats the cases of test/engine/import.test.ts with every resource type.
  it.runIf(engine === "embedded")("are imported by id", { tags: ["long"] }, async () => {
    const harness = new Harness(fleet.env, "elsewhere");
    const plain = { ...allResources };
    delete plain.bob;
    // The secret of an imported API key is unknown, so only the name identifies the key.
    plain.ci = { type: "ApiKey", args: { name: "imported", role: "observer", validDays: 30 } };
    const { key, rule, ...givers } = plain;
    await harness.up({ ...givers, key, rule } as Program);
    const imported: Policy = Object.fromEntries(
      Object.entries(plain).map(([name, one]) => [
        name,
        { ...one, options: { import: harness.state.get(name)?.id ?? "" } },
      ]),
    );
    // A namespace can also be imported by its name.
    if (imported.trials?.options) imported.trials.options.import = "trials";
    const up = await stack.result(UP, policyEnv(imported));
    expect(changesOf(up).filter((line) => !/^import /.test(line))).toEqual([
      `create commonjs-program-${stack.name}`,
    ]);
    expect(changesOf(await stack.result(["preview"], policyEnv(imported)))).toEqual([]);
    expect(changesOf(await stack.result(["preview"], policyEnv(plain)))).toEqual([]);
    await harness.close();
  });
});
