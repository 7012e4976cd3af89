import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { changesOf, engines, Stack } from "../support/gatehouse.ts";
import { type Policy, policyEnv } from "../support/policy.ts";

const PROGRAM = fileURLToPath(new URL("./fixtures/commonjs", import.meta.url));
const PROJECT = "commonjs-program";

const EDGE = "02:00:00:00:aa:01";
const [firstKey, secondKey] = [sshKeyLine("ana@laptop"), sshKeyLine("ana@desk")];

/** One of each resource, in the user's own namespace and in one that the program makes. */
const base: Policy = {
  staging: { type: "Namespace", args: { name: "staging", settings: { sessionRecord: false } } },
  bob: { type: "Member", args: { email: "bob@example.com", role: "operator" } },
  "bob-staging": {
    type: "Member",
    args: { tenant: { $ref: "staging.tenant" }, email: "bob@example.com", role: "observer" },
  },
  tags: { type: "DeviceTags", args: { device: "web-01", tags: ["prod", "web"] } },
  edge: { type: "DeviceTags", args: { device: "edge-01", tags: ["edge"] } },
  key: {
    type: "PublicKey",
    args: { name: "laptop", data: firstKey, username: "^root$", filter: { tags: { $ref: "tags.tags" } } },
  },
  "key-staging": {
    type: "PublicKey",
    args: {
      tenant: { $ref: "staging.tenant" },
      name: "laptop",
      data: firstKey,
      username: ".*",
      filter: { hostname: ".*" },
    },
  },
};

/** The policy with other arguments of the resources named. */
function withArgs(changes: Record<string, Record<string, unknown>>): Policy {
  const changed = Object.entries(changes).map(([name, args]) => {
    const resource = base[name];
    if (!resource) throw new Error(`no resource ${name}`);
    return [name, { ...resource, args: { ...resource.args, ...args } }];
  });
  return { ...base, ...Object.fromEntries(changed) };
}

// What test/provider shows of each resource, and resources.test.ts of all, here together in a long life of one stack:
// each test goes on where the one before has left it.
const long = { timeout: 120_000, tags: ["long"] };
describe.each(engines)("a policy, applied by the $label", long, ({ engine, available }) => {
  let fleet: Fleet;
  let stack: Stack;
  let folder: string;
  let edge: string;

  beforeAll(async () => {
    if (!available) return;
    fleet = await startFleet(["bob"]);
    await fleet.enrol("web-01");
    await fleet.enrol("web-02");
    edge = await fleet.enrol("edge-01", EDGE);
    folder = mkdtempSync(join(tmpdir(), "gatehouse-state-"));
    stack = new Stack({ program: PROGRAM, folder, engine, env: fleet.env });
  });
  afterAll(async () => {
    if (!available) return;
    stack.dispose();
    rmSync(folder, { recursive: true, force: true });
    await fleet.stop();
  });

  const keysOf = (tenant: string) =>
    fleet.client.forTenant(tenant).getPublicKeys({ query: { perPage: 100 } });
  const stagingTenant = async () => {
    const namespaces = await fleet.client.getNamespaces({ query: { perPage: 100 } });
    const found = namespaces.find((namespace) => namespace.name === "staging");
    if (!found) throw new Error("no namespace staging");
    return found.tenantId;
  };

  it.runIf(available)("is previewed, made, and then needs nothing", async () => {
    // Seven resources and the stack itself, as the Pulumi CLI counts.
    const preview = await stack.result(["preview", "--create"], policyEnv(base));
    expect(preview.summary).toMatchObject({ create: 8, update: 0, delete: 0, replace: 0 });
    expect(await keysOf(fleet.tenant)).toEqual([]);

    const up = await stack.result(["up", "--yes"], policyEnv(base));
    expect(up.summary).toMatchObject({ create: 8 });
    const [key] = await keysOf(fleet.tenant);
    expect(key).toMatchObject({ name: "laptop", username: "^root$", filter: { tags: ["prod", "web"] } });
    const staging = await fleet.client.getNamespace({ params: { tenant: await stagingTenant() } });
    expect(staging.settings.sessionRecord).toBe(false);
    expect(staging.members.map((member) => member.role).sort()).toEqual(["observer", "owner"]);

    const again = await stack.result(["preview"], policyEnv(base));
    expect(changesOf(again)).toEqual([]);
    expect(await stack.run(["drift"], policyEnv(base))).toMatchObject({ code: 0 });

    const state = stack.stateText(PROJECT);
    expect(state).not.toContain("correct-horse");
    const providers = [...state.matchAll(/"__provider": *"((?:[^"\\]|\\.)*)"/g)].map(
      (match) => match[1] ?? "",
    );
    expect(providers.length).toBeGreaterThan(0);
    expect(Math.max(...providers.map((text) => text.length))).toBeLessThanOrEqual(700);
  });

  it.runIf(available)("shows no change for other spellings, and one for each change", async () => {
    const previewOf = async (changes: Parameters<typeof withArgs>[0]) =>
      changesOf(await stack.result(["preview"], policyEnv(withArgs(changes))));

    const blob = firstKey.split(" ").slice(0, 2).join("  ");
    const spellings = {
      key: { data: `${blob} another comment\n` },
      tags: { tags: ["web", "prod"] },
      staging: { settings: { sessionRecord: false, connectionAnnouncement: "" } },
    };
    expect(await previewOf(spellings)).toEqual([]);
    const changes = {
      key: { username: "^ana$" },
      bob: { role: "administrator" },
      "key-staging": { data: secondKey },
      edge: { device: "web-02" },
      // The namespace's id stays known, so that its children are not shown as changed.
      staging: { name: "trials" },
    };
    expect(await previewOf(changes)).toEqual([
      "replace edge device",
      "replace key-staging data",
      "update bob role",
      "update key username",
      "update staging name",
    ]);
  });

  it.runIf(available)("finds what was changed by hand, and repairs it", async () => {
    const staging = await stagingTenant();
    const { client, tenant } = fleet;
    const [key] = await keysOf(tenant);
    const fingerprint = key?.fingerprint ?? "";
    await client.updatePublicKey({
      params: { fingerprint },
      body: { name: "laptop", username: ".*", filter: { hostname: ".*" } },
    });
    await client.forTenant(staging).deletePublicKey({ params: { fingerprint } });
    await client.forTenant(staging).editNamespace({
      params: { tenant: staging },
      body: { settings: { sessionRecord: true } },
    });
    const { members } = await client.getNamespace({ params: { tenant } });
    const bob = members.find((member) => member.email === "bob@example.com");
    await client.updateMember({ params: { tenant, uid: bob?.id ?? "" }, body: { role: "administrator" } });

    const drift = changesOf(await stack.result(["drift"], policyEnv(base), 2));
    expect(drift.map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual([
      "delete key-staging",
      "update bob",
      "update key",
      "update staging",
    ]);
    expect(drift).toContain("update bob role");
    expect(drift).toContain("update staging settings.sessionRecord");

    const repaired = await stack.result(["up", "--refresh", "--yes"], policyEnv(base));
    expect(repaired.summary).toMatchObject({ create: 1, update: 3, delete: 0, replace: 0 });
    expect(await keysOf(tenant)).toMatchObject([{ username: "^root$", filter: { tags: ["prod", "web"] } }]);
    expect((await stack.run(["drift"], policyEnv(base))).code).toBe(0);
  });

  it.runIf(available)(
    "plans a vanished namespace again, with what was in it, and follows a device that enrols again, by its name",
    async () => {
      const staging = await stagingTenant();
      await fleet.client.forTenant(staging).deleteNamespace({ params: { tenant: staging } });
      await fleet.client.deleteDevice({ params: { uid: edge } });
      await fleet.enrol("edge-01", EDGE.replace("aa", "bb"));

      const drift = await stack.result(["drift"], policyEnv(base), 2);
      expect(changesOf(drift).map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual([
        "delete bob-staging",
        "delete key-staging",
        "delete staging",
        "update edge",
      ]);
      const repaired = await stack.result(["up", "--yes", "--refresh", "--skip-preview"], policyEnv(base));
      expect(repaired.summary).toMatchObject({ create: 3 });
      expect(await stagingTenant()).not.toBe(staging);
      const devices = await fleet.client.getDevices({ query: { perPage: 100 } });
      expect(devices.find((device) => device.name === "edge-01")?.tags).toEqual(["edge"]);
    },
  );

  it.runIf(available)("removes what it made, and nothing else", async () => {
    await fleet.client.createPublicKey({
      body: {
        data: Buffer.from(sshKeyLine("made by hand")).toString("base64"),
        name: "by hand",
        username: "^root$",
        filter: { hostname: ".*" },
      },
    });
    const gone = await stack.result(["destroy", "--yes"], policyEnv(base));
    expect(gone.summary).toMatchObject({ delete: 8 });
    expect((await keysOf(fleet.tenant)).map((key) => key.name)).toEqual(["by hand"]);
    const { members } = await fleet.client.getNamespace({ params: { tenant: fleet.tenant } });
    expect(members.map((member) => member.role)).toEqual(["owner"]);
  });
});
