import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Harness, type Program } from "../provider/support/harness.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { createKey } from "../support/fleet.ts";
import { changesOf, engines, Stack } from "../support/gatehouse.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { type Policy, policyEnv } from "../support/policy.ts";
import { requestsDuring } from "../support/requests.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const PROGRAM = fileURLToPath(new URL("./fixtures/commonjs", import.meta.url));
const PROJECT = "commonjs-program";

const data = sshKeyLine("ana@laptop");

/**
 * One resource of each type. The filters use the tags as text, not as outputs of the Tag resources, and precede these
 * resources in the program. So the engine does not know that the filters depend on the tags.
 */
const base: Policy = {
  key: {
    type: "PublicKey",
    args: { name: "laptop", data, username: "^root$", filter: { tags: ["edge", "web"] } },
  },
  rule: {
    type: "FirewallRule",
    args: { action: "deny", priority: 5, sourceIp: "^203\\.", username: ".*", filter: { tags: ["lab"] } },
  },
  tags: { type: "DeviceTags", args: { device: "web-01", tags: ["edge", "web"] } },
  lab: { type: "DeviceTagAttachment", args: { device: "web-02", tag: "lab" } },
  gate: { type: "Device", args: { device: "02:00:00:00:bb:01", name: "gate" } },
  ci: { type: "ApiKey", args: { role: "observer", validDays: 30 } },
  deploy: {
    type: "TrustedWorkload",
    args: {
      name: "deploy",
      issuer: "https://gitlab.example.com",
      audience: "gatehouse",
      role: "operator",
      claims: { project_path: "acme/fleet", ref_protected: "true" },
    },
  },
  trials: { type: "Namespace", args: { name: "trials" } },
  bob: {
    type: "Member",
    args: { tenant: { $ref: "trials.tenant" }, email: "bob@example.com", role: "observer" },
  },
  zone: { type: "Tag", args: { name: "zone1" } },
};

/** For each resource: a changed input, and the expected step (update or replace). */
const CHANGES: Record<string, { args: Record<string, unknown>; step: string }> = {
  key: { args: { username: "^ana$" }, step: "update key username" },
  rule: { args: { priority: 7 }, step: "update rule priority" },
  tags: { args: { tags: ["edge", "web", "prod"] }, step: "update tags tags" },
  lab: { args: { device: "web-03" }, step: "replace lab device" },
  gate: { args: { name: "gate-b" }, step: "update gate name" },
  ci: { args: { keepers: { year: "2027" } }, step: "replace ci keepers" },
  deploy: { args: { claims: { project_path: "acme/*" } }, step: "update deploy claims" },
  trials: { args: { settings: { sessionRecord: false } }, step: "update trials settings" },
  bob: { args: { role: "operator" }, step: "update bob role" },
  zone: { args: { name: "zone2" }, step: "update zone name" },
};

const changed: Policy = Object.fromEntries(
  Object.entries(base).map(([name, { type, args }]) => [
    name,
    { type, args: { ...args, ...CHANGES[name]?.args } },
  ]),
);

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}

it("the program contains every resource", () => {
  expect(
    Object.values(base)
      .map(({ type }) => type)
      .sort(),
  ).toEqual(ownDefinitions.map(({ name }) => name).sort());
});

/** Arguments of an up without a preview. The preview would double the test's time. */
const UP = ["up", "--yes", "--skip-preview"];

describe.each(engines)("all resources, with the $label", { timeout: 180_000 }, ({ engine, available }) => {
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
    if (available) await fleet.clear("anchor");
    stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  // Repeats a case of test/provider/apiKeyRotation.test.ts with a real engine.
  it.runIf(available)(
    "an API key that --replace replaces stays valid for its overlap",
    { tags: ["long"] },
    async () => {
      const policy: Policy = {
        ci: { type: "ApiKey", args: { role: "observer", validDays: 30, overlap: 3 } },
      };
      const keys = async () => (await fleet.client.listApiKeys()).map(({ createdAt }) => createdAt).sort();
      await stack.result(UP, policyEnv(policy));
      const [first] = await keys();
      const replaced = await stack.result([...UP, "--replace", "**::ci"], policyEnv(policy));
      expect(changesOf(replaced)).toEqual([expect.stringMatching(/^replace ci/)]);
      const both = await keys();
      expect([both.length, both[0]]).toEqual([2, first]);
      await stack.result(["destroy", "--yes"], policyEnv(policy));
      expect(await keys()).toEqual([]);
    },
  );

  it.runIf(available)("are created, changed and removed, without a secret in plaintext", async () => {
    const secretFile = join(mkdtempSync(join(tmpdir(), "gatehouse-secret-")), "secret");
    const outputs: string[] = [];
    const run = async (args: string[], policy: Policy, env: Record<string, string> = {}) => {
      const result = await stack.run(args, { ...policyEnv(policy), SECRET_FILE: secretFile, ...env });
      outputs.push(result.stdout, result.stderr);
      expect(result.code, result.stdout + result.stderr).toBe(0);
    };
    await run(UP, base, { LOOKUPS: "1" });
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

    const steps = Object.values(CHANGES).map(({ step }) => step);
    const planned = changesOf(await stack.result(["preview"], policyEnv(changed)));
    expect(planned.map((line) => line.split(".")[0]).sort()).toEqual(steps.sort());
    await run(UP, changed);
    expect(changesOf(await stack.result(["preview"], policyEnv(changed)))).toEqual([]);
    expect(changesOf(await stack.result(["refresh", "--yes"], policyEnv(changed)))).toEqual([]);
    const secrets = [secret, readFileSync(secretFile, "utf8").trim()];
    expect(new Set(secrets).size).toBe(2);

    expect(stack.stateText(PROJECT)).toContain('"ciphertext"');
    const written = filesBelow(folder).map((file) => readFileSync(file, "latin1"));
    for (const text of [...written, ...outputs, fleet.service.output()]) {
      for (const value of [...secrets, "correct-horse"]) expect(text.includes(value)).toBe(false);
    }
    const { client } = fleet;
    const other = await createKey(client, "other");
    await run(["destroy", "--yes"], changed);
    // A destroy deletes only the objects of its own stack.
    expect((await client.getPublicKeys()).map(({ fingerprint }) => fingerprint)).toEqual([other]);
    await client.deletePublicKey({ params: { fingerprint: other } });
    expect(await client.getFirewallRules()).toEqual([]);
    expect(await client.listApiKeys()).toEqual([]);
    expect(await client.getTags()).toEqual(["anchor"]);
    rmSync(join(secretFile, ".."), { recursive: true });
  });

  // Repeats a case of test/provider/tags.test.ts with a real engine.
  it.runIf(available)(
    "a tag is renamed in one step on all objects that carry it, before other changes",
    { tags: ["long"] },
    async () => {
      const named = (name: string): Policy => ({
        zone: { type: "Tag", args: { name } },
        one: { type: "DeviceTags", args: { device: "web-01", tags: [{ $ref: "zone.name" }, "edge"] } },
        two: { type: "DeviceTagAttachment", args: { device: "web-02", tag: { $ref: "zone.name" } } },
        key: {
          type: "PublicKey",
          args: { name: "laptop", data, username: "^root$", filter: { tags: [{ $ref: "zone.name" }] } },
        },
        deny: {
          type: "FirewallRule",
          args: {
            action: "deny",
            priority: 1,
            sourceIp: ".*",
            username: ".*",
            filter: { tags: [{ $ref: "zone.name" }] },
          },
        },
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
    },
  );

  // Repeats a case of test/provider/adoption.test.ts with a real engine, and checks the printed output.
  it.runIf(available)(
    "a run counts existing objects as adopted, and new objects as created",
    { tags: ["long"] },
    async () => {
      const { key, rule } = { ...base };
      const filter = { hostname: ".*" };
      const declared = (adopt?: true): Policy => ({
        key: { type: "PublicKey", args: { ...key?.args, filter, adopt } },
        rule: { type: "FirewallRule", args: { ...rule?.args, filter, adopt } },
      });
      const others = new Stack({ program: PROGRAM, folder, engine, env: fleet.env });
      try {
        await others.result(UP, policyEnv(declared()));
        const more: Policy = { ...declared(true), ci: base.ci as Policy[string] };
        const { stdout } = await stack.run(["up", "--yes"], policyEnv(more));
        expect(stdout).toMatch(/^2 created, 2 adopted /m);
        for (const name of ["PublicKey key", "FirewallRule rule"]) {
          expect(stdout).toMatch(new RegExp(`^ = {2}${name}`, "m"));
          expect(stdout).not.toMatch(new RegExp(`^ \\+ {2}${name}$`, "m"));
        }
        expect(changesOf(await stack.result(["preview"], policyEnv(more)))).toEqual([]);
      } finally {
        others.dispose();
      }
    },
  );

  // Repeats the cases of test/engine/import.test.ts with every resource type.
  it.runIf(available && engine === "embedded")("are imported by id", { tags: ["long"] }, async () => {
    const harness = new Harness(fleet.env, "elsewhere");
    const plain = { ...base };
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
