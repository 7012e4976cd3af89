import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startFilledFleet } from "../provider/support/filledFleet.ts";
import { sshKeyLine, UNIVERSE } from "../provider/support/programs.ts";
import { testFolder } from "../support/folder.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { type HoldingProxy, startHoldingProxy } from "../support/proxy.ts";
import { sampleConfiguration, typeOf } from "./support/configurations.ts";
import {
  hasTerraform,
  installedProvider,
  keyArguments,
  LABEL,
  RootModule,
  resources,
  ruleArguments,
  sharedTerraform,
  startProvider,
} from "./support/terraform.ts";

/** The kinds whose successor is always a new object. */
const NEW_OBJECTS = ["gatehouse_api_key"];

describe.runIf(hasTerraform)(`replacements with create_before_destroy under ${LABEL}`, () => {
  const fleet = sharedTerraform(startFilledFleet);
  let holding: HoldingProxy;
  beforeAll(async () => {
    holding = await startHoldingProxy(fleet.env.GATEHOUSE_URL ?? "");
  });
  afterAll(() => holding.stop());
  // Deletes objects that a failed test left, so that they do not affect other tests.
  afterEach(() => fleet.clear(...UNIVERSE.tags));

  const lifecycle = { create_before_destroy: true };
  const key = (more: object = {}) =>
    resources({ public_key: { one: keyArguments({ username: "^ana$", lifecycle, ...more }) } });
  const keyAddress = "gatehouse_public_key.one";
  const ids = (root: RootModule) =>
    Object.fromEntries(
      root
        .state()
        .resources.map(({ type, instances }) => [type, instances.map(({ attributes }) => attributes.id)]),
    );
  /** Creates a root module and applies a configuration in it. */
  async function applied(configuration: Readonly<Record<string, unknown>>): Promise<RootModule> {
    const root = fleet.newModule();
    await root.applied(configuration);
    return root;
  }
  /** Destroys all resources, and checks that no key and no rule is left. */
  async function expectDestroyed(root: RootModule): Promise<void> {
    await root.destroy();
    expect([await fleet.client.getPublicKeys(), await fleet.client.getFirewallRules()]).toEqual([[], []]);
  }

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

  it("keep the objects of all kinds", { tags: ["long"] }, async () => {
    await fleet.restoreDevices();
    const { types, resource } = allKinds();
    const root = await applied({ resource });
    const before = ids(root);
    await root.apply(...types.map((type) => `-replace=${type}.one`));
    expect(ids(root)).toEqual(before);
    expect(await root.changes()).toEqual([]);
    // The second replacement starts from instances that inherited their objects.
    await root.apply(...types.map((type) => `-replace=${type}.one`));
    expect(ids(root)).toEqual(before);
    expect(await root.changes()).toEqual([]);
    await expectDestroyed(root);
  });

  it("that were killed before the deletion converge, and keep the objects of all kinds", {
    tags: ["long"],
  }, async () => {
    await fleet.restoreDevices();
    const { types, resource } = allKinds();
    const root = await applied({ resource });
    const before = new Map(
      root.state().resources.map(({ type, instances }) => [type, instances[0]] as const),
    );
    await root.apply(...types.map((type) => `-replace=${type}.one`));
    // The state after a run that was killed between the creates and the deletions.
    const state = root.state();
    for (const { type, instances } of state.resources) {
      const [{ private: data = "" } = {}] = instances;
      const old = before.get(type);
      expect(data, type).not.toBe(old?.private);
      if (old) instances.push({ ...old, deposed: "abcd1234" });
    }
    root.writeState(state);
    await fleet.restartProvider();
    const next = fleet.newModule(root.folder);
    const deletions = types.map((type) => `${type}.one: delete`).sort();
    expect((await next.changes()).sort()).toEqual(deletions);
    await next.must("apply", "plan");
    expect(await next.changes()).toEqual([]);
    expect(ids(next)).toEqual(ids(root));
    await next.destroy();
  });

  it("keep the object after Terraform and the provider were killed", { tags: ["long"] }, async () => {
    // Terraform deletes the old instance after the dependent rule was created.
    const rule = ruleArguments({ depends_on: [keyAddress] });
    const env = { ...fleet.env, GATEHOUSE_URL: holding.url };
    const killed = await startProvider(env);
    const root = new RootModule(testFolder(), { ...killed.env, ...env });
    await root.applied(key());
    root.write({ resource: { ...key().resource, gatehouse_firewall_rule: { one: rule } } });
    const held = holding.hold("POST /api/firewall/rules");
    const apply = root.start("apply", "-auto-approve", `-replace=${keyAddress}`);
    await Promise.race([held.arrived, apply.ended]);
    apply.child.kill("SIGKILL");
    process.kill(killed.pid, "SIGKILL");
    await apply.ended;
    const instancesIn = (module: RootModule) =>
      module.state().resources.flatMap(({ instances }) => instances);
    expect(instancesIn(root)).toHaveLength(2);
    const next = fleet.newModule(root.folder);
    await next.apply("-lock=false");
    expect(await next.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toHaveLength(1);
    expect(instancesIn(next)).toHaveLength(2);
    await expectDestroyed(next);
  });

  it("update the object to the configuration", async () => {
    const root = await applied(key());
    await root.applied(key({ username: "^root$" }), `-replace=${keyAddress}`);
    expect(await root.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ username: "^root$" }]);
    await expectDestroyed(root);
  });

  it("create a new object if the identity changes", async () => {
    const root = await applied(key());
    const [before] = await fleet.client.getPublicKeys();
    await root.applied(key({ data: sshKeyLine("another") }));
    expect(await root.changes()).toEqual([]);
    const [after, ...others] = await fleet.client.getPublicKeys();
    expect(others).toEqual([]);
    expect(after?.fingerprint).not.toBe(before?.fingerprint);
    await root.destroy();
  });

  // Long, because Terraform starts the provider for each step.
  it("inherit the object in another process than the plan", { tags: ["long"] }, async () => {
    const root = new RootModule(testFolder(), { ...installedProvider(), ...fleet.env });
    await root.applied(key());
    const [before] = await fleet.client.getPublicKeys();
    await root.apply(`-replace=${keyAddress}`);
    expect(await root.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ createdAt: before?.createdAt }]);
    await expectDestroyed(root);
  });

  it("leave an object that another configuration has declared since, and fail", async () => {
    const of = (project: string) => ({ provider: { gatehouse: { project } } });
    const root = await applied({ ...key(), ...of("first") });
    await applied({ ...key({ adopt: true }), ...of("second") });
    const output = await root.rejected("apply", "-auto-approve", `-replace=${keyAddress}`);
    expect(output).toContain("already exists");
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ declaredBy: { project: "second" } }]);
  });
});
