import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type FilledFleet, startFilledFleet } from "../provider/support/filledFleet.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { testFolder } from "../support/folder.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { type HoldingProxy, startHoldingProxy } from "../support/proxy.ts";
import { sampleConfiguration, typeOf } from "./support/configurations.ts";
import {
  type AttachedProvider,
  hasTerraform,
  installedProvider,
  LABEL,
  RootModule,
  startProvider,
} from "./support/terraform.ts";

/** The kinds whose successor is always a new object. */
const NEW_OBJECTS = ["gatehouse_api_key"];

describe.runIf(hasTerraform)(`replacements with create_before_destroy under ${LABEL}`, () => {
  let fleet: FilledFleet;
  let provider: AttachedProvider;
  let holding: HoldingProxy;
  beforeAll(async () => {
    fleet = await startFilledFleet();
    provider = await startProvider(fleet.env);
    holding = await startHoldingProxy(fleet.env.GATEHOUSE_URL ?? "");
  });
  afterAll(async () => {
    await holding.stop();
    await provider.stop();
    await fleet.stop();
  });
  // Deletes objects that a failed test left, so that they do not affect other tests.
  afterEach(async () => {
    const { client } = fleet;
    for (const { fingerprint } of await client.getPublicKeys())
      await client.deletePublicKey({ params: { fingerprint } });
    for (const { id } of await client.getFirewallRules()) await client.deleteFirewallRule({ params: { id } });
  });

  const lifecycle = { create_before_destroy: true };
  const newModule = (folder = testFolder()) => new RootModule(folder, { ...provider.env, ...fleet.env });
  const data = sshKeyLine("ana");
  const key = (more: object = {}) => ({
    resource: {
      gatehouse_public_key: {
        one: { name: "ana", data, username: "^ana$", filter: { hostname: ".*" }, lifecycle, ...more },
      },
    },
  });
  const keyAddress = "gatehouse_public_key.one";
  const ids = (root: RootModule) =>
    Object.fromEntries(
      root
        .state()
        .resources.map(({ type, instances }) => [type, instances.map(({ attributes }) => attributes.id)]),
    );
  /** Stops the provider, as after a killed run, and starts another one. */
  const restartProvider = async () => {
    await provider.stop();
    provider = await startProvider(fleet.env);
  };

  /** Returns all kinds of resources whose successor declares the same object, in one configuration. */
  const allKinds = () => {
    const kinds = ownDefinitions.filter((definition) => !NEW_OBJECTS.includes(typeOf(definition)));
    return {
      types: kinds.map(typeOf),
      resource: Object.fromEntries(
        kinds.map((definition) => {
          const { base } = sampleConfiguration(definition, fleet);
          return [typeOf(definition), { one: { ...base, lifecycle } }];
        }),
      ),
    };
  };

  it("keep the objects of all kinds", async () => {
    await fleet.restoreDevices();
    const { types, resource } = allKinds();
    const root = newModule();
    root.write({ resource });
    await root.apply();
    const before = ids(root);
    await root.apply(...types.map((type) => `-replace=${type}.one`));
    expect(ids(root)).toEqual(before);
    expect(await root.changes()).toEqual([]);
    // The second replacement starts from instances that inherited their objects.
    await root.apply(...types.map((type) => `-replace=${type}.one`));
    expect(ids(root)).toEqual(before);
    expect(await root.changes()).toEqual([]);
    await root.must("destroy", "-auto-approve");
    expect(await fleet.client.getPublicKeys()).toEqual([]);
    expect(await fleet.client.getFirewallRules()).toEqual([]);
  });

  it("that were killed before the deletion converge, and keep the objects of all kinds", async () => {
    await fleet.restoreDevices();
    const { types, resource } = allKinds();
    const root = newModule();
    root.write({ resource });
    await root.apply();
    const before = instancesIn(root);
    await root.apply(...types.map((type) => `-replace=${type}.one`));
    // The state after a run that was killed between the creates and the deletions.
    const state = stateOf(root);
    for (const { type, instances } of state.resources) {
      const [{ private: data = "" } = {}] = instances;
      expect(data, type).not.toBe(before.get(type)?.private);
      instances.push({ ...before.get(type), deposed: "abcd1234" });
    }
    writeState(root, state);
    await restartProvider();
    const next = newModule(root.folder);
    const deletions = types.map((type) => `${type}.one: delete`).sort();
    expect((await next.changes()).sort()).toEqual(deletions);
    await next.must("apply", "plan");
    expect(await next.changes()).toEqual([]);
    expect(ids(next)).toEqual(ids(root));
    await next.must("destroy", "-auto-approve");
  });

  it("keep the object after Terraform and the provider were killed", async () => {
    // Terraform deletes the old instance after the dependent rule was created.
    const rule = {
      action: "deny",
      priority: 5,
      source_ip: ".*",
      username: "^ana$",
      filter: { hostname: ".*" },
      depends_on: [keyAddress],
    };
    const env = { ...fleet.env, GATEHOUSE_URL: holding.url };
    const killed = await startProvider(env);
    const root = new RootModule(testFolder(), { ...killed.env, ...env });
    root.write(key());
    await root.apply();
    root.write({ resource: { ...key().resource, gatehouse_firewall_rule: { one: rule } } });
    const held = holding.hold("POST /api/firewall/rules");
    const apply = root.start("apply", "-auto-approve", `-replace=${keyAddress}`);
    await Promise.race([held.arrived, apply.ended]);
    apply.child.kill("SIGKILL");
    process.kill(killed.pid, "SIGKILL");
    await apply.ended;
    const [created] = stateOf(root).resources.flatMap(({ instances }) => instances);
    expect(stateOf(root).resources.flatMap(({ instances }) => instances)).toHaveLength(2);
    expect(created).toBeDefined();
    const next = newModule(root.folder);
    await next.apply("-lock=false");
    expect(await next.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toHaveLength(1);
    expect(stateOf(next).resources.flatMap(({ instances }) => instances)).toHaveLength(2);
    await next.must("destroy", "-auto-approve");
    expect(await fleet.client.getPublicKeys()).toEqual([]);
  });

  it("update the object to the configuration", async () => {
    const root = newModule();
    root.write(key());
    await root.apply();
    root.write(key({ username: "^root$" }));
    await root.apply(`-replace=${keyAddress}`);
    expect(await root.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ username: "^root$" }]);
    await root.must("destroy", "-auto-approve");
    expect(await fleet.client.getPublicKeys()).toEqual([]);
  });

  it("create a new object if the identity changes", async () => {
    const root = newModule();
    root.write(key());
    await root.apply();
    root.write(key({ data: sshKeyLine("another") }));
    const [before] = await fleet.client.getPublicKeys();
    await root.apply();
    expect(await root.changes()).toEqual([]);
    const [after, ...others] = await fleet.client.getPublicKeys();
    expect(others).toEqual([]);
    expect(after?.fingerprint).not.toBe(before?.fingerprint);
    await root.must("destroy", "-auto-approve");
  });

  // Long, because Terraform starts the provider for each step.
  it("inherit the object in another process than the plan", { tags: ["long"] }, async () => {
    const root = new RootModule(testFolder(), { ...installedProvider(), ...fleet.env });
    root.write(key());
    await root.apply();
    const [before] = await fleet.client.getPublicKeys();
    await root.apply(`-replace=${keyAddress}`);
    expect(await root.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ createdAt: before?.createdAt }]);
    await root.must("destroy", "-auto-approve");
    expect(await fleet.client.getPublicKeys()).toEqual([]);
  });

  it("leave an object that another configuration has declared since, and fail", async () => {
    const root = newModule();
    root.write({ ...key(), provider: { gatehouse: { project: "first" } } });
    await root.apply();
    const other = newModule();
    other.write({ ...key({ adopt: true }), provider: { gatehouse: { project: "second" } } });
    await other.apply();
    const { code, output } = await root.run("apply", "-auto-approve", `-replace=${keyAddress}`);
    expect(code).toBe(1);
    expect(output).toContain("already exists");
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ declaredBy: { project: "second" } }]);
  });
});

interface WrittenState {
  serial: number;
  resources: { type: string; instances: { private?: string; deposed?: string; attributes?: object }[] }[];
}

const stateOf = (root: RootModule): WrittenState =>
  JSON.parse(readFileSync(join(root.folder, "terraform.tfstate"), "utf8"));

const writeState = (root: RootModule, state: WrittenState): void =>
  writeFileSync(
    join(root.folder, "terraform.tfstate"),
    JSON.stringify({ ...state, serial: state.serial + 1 }),
  );

/** Returns the instance of each resource in the state, by type. */
const instancesIn = (root: RootModule) =>
  new Map(stateOf(root).resources.map(({ type, instances }) => [type, instances[0]] as const));
