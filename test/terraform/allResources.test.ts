import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startFilledFleet } from "../provider/support/filledFleet.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { sampleConfiguration, typeOf } from "./support/configurations.ts";
import { changesIn, hasTerraform, LABEL, resources, sharedTerraform } from "./support/terraform.ts";

describe.runIf(hasTerraform)(`all resources under ${LABEL}`, () => {
  const fleet = sharedTerraform(startFilledFleet);
  const withAll = (configurations: ReadonlyMap<string, object>) => ({
    resource: Object.fromEntries([...configurations].map(([type, one]) => [type, { one }])),
  });
  /**
   * Definitions of all resources, in one root module. The two resources that add tags to a device use different
   * devices.
   */
  const samples = () =>
    new Map(ownDefinitions.map((each) => [typeOf(each), sampleConfiguration(each, fleet)]));

  it("are created, changed, replaced, imported and destroyed, with an empty plan after each apply", async () => {
    const all = samples();
    const root = fleet.newModule();
    const bases = new Map([...all].map(([type, { base }]) => [type, base]));
    root.write(withAll(bases));
    await root.must("validate");
    expect(await root.changes()).toEqual([...all.keys()].sort().map((type) => `${type}.one: create`));
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);

    // Changes one input of each resource, which updates or replaces the object.
    const changed = new Map(
      [...all].map(([type, { base, changes }]) => [type, [...changes.values()][0] ?? base]),
    );
    root.write(withAll(changed));
    const planned = await root.changes();
    expect(planned.length).toBeGreaterThan(0);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);

    const texts = readFileSync(root.stateFile, "utf8");
    for (const { base } of all.values()) if ("key_wo" in base) expect(texts).not.toContain(base.key_wo);

    // A second state imports the objects of the first state by their ids.
    const ids = root
      .state()
      .resources.map(({ type, instances }) => [type, instances[0]?.attributes.id] as const);
    expect(ids).toHaveLength(ownDefinitions.length);
    const other = fleet.newModule();
    const imports = ids.map(([type, id]) => ({ to: `${type}.one`, id }));
    other.write({ ...withAll(changed), import: imports });
    const importPlan = await other.plan();
    const wrong = changesIn(importPlan).filter((line) => !/: (no-op\+import)$/.test(line));
    // The import plan updates these resources. They have settings that the object on the service does not contain and
    // that only affect later runs: the rotation of a key, the effect of a destroy, and the permission to lock out.
    const ofRuns = ["api_key", "device", "member", "namespace"];
    expect(wrong.sort()).toEqual(ofRuns.map((kind) => `gatehouse_${kind}.one: update+import`));

    // Terraform generates the configuration from the imports alone.
    const third = fleet.newModule();
    third.write({ import: imports });
    await third.must("plan", "-generate-config-out=generated.tf", "-out=plan");
    const generated = (await third.plan()).resource_changes ?? [];
    expect(generated.map(({ change }) => change.actions.join())).toEqual(ownDefinitions.map(() => "no-op"));

    await root.destroy();
    expect(root.state().resources).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toEqual([]);
    expect(await fleet.client.getFirewallRules()).toEqual([]);
    expect(await fleet.client.listApiKeys()).toEqual([]);
  });

  it("have no drift right after the apply, without a refresh", { tags: ["long"] }, async () => {
    await fleet.restoreDevices();
    const root = fleet.newModule();
    await root.applied(withAll(new Map([...samples()].map(([type, { base }]) => [type, base]))));
    const file = await root.planFile("-refresh=false");
    const args = ["drift", root.folder, "--terraform", file, "--unmanaged", "ignore", "--json"];
    const { stdout, stderr } = await gatehouse(args, fleet.env);
    expect(stderr).toBe("");
    const { drifted, summary, notApplied } = JSON.parse(stdout);
    expect({ drifted, notApplied, same: summary.same }).toEqual({
      drifted: [],
      notApplied: [],
      same: ownDefinitions.length,
    });
    await root.destroy();
  });

  it("are imported and updated in place, and values that an update does not change stay known in the plan", {
    tags: ["long"],
  }, async () => {
    await fleet.restoreDevices();
    const all = samples();
    const bases = new Map([...all].map(([type, { base }]) => [type, base]));
    const creator = fleet.newModule();
    await creator.applied(withAll(bases));
    const imports = creator
      .state()
      .resources.map(({ type, instances }) => ({ to: `${type}.one`, id: instances[0]?.attributes.id }));
    const root = fleet.newModule();
    await root.applied({ ...withAll(bases), import: imports });
    expect(await root.changes()).toEqual([]);

    // `adopt` only controls what a create does. A change of `adopt` alone must not change an object.
    for (const adopt of [true, "overwrite", false, undefined]) {
      const adopting = ownDefinitions.map((each): [string, object] => {
        const base = bases.get(typeOf(each)) ?? {};
        return [typeOf(each), each.inputs.adopt && adopt !== undefined ? { ...base, adopt } : base];
      });
      root.write(withAll(new Map(adopting)));
      expect(await root.changes(), `adopt = ${adopt}`).toEqual([]);
    }

    const edited = ownDefinitions.map((each): [string, object] => {
      const { base, changes } = all.get(typeOf(each)) ?? { base: {}, changes: new Map<string, object>() };
      const inPlace = [...changes].find(([input]) => !each.inputs[input]?.replaces);
      return [typeOf(each), inPlace?.[1] ?? base];
    });
    root.write(withAll(new Map(edited)));
    const plan = await root.plan();
    expect(changesIn(plan).filter((line) => !line.endsWith(": update"))).toEqual([]);
    // All resources are updated except the tag attachment, whose inputs all force a replacement.
    expect(changesIn(plan)).toHaveLength(ownDefinitions.length - 1);
    for (const { address, change } of plan.resource_changes ?? []) {
      expect(JSON.stringify(change.after_unknown), address).not.toContain("true");
    }
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    await root.destroy();
  });

  it("accept only UUIDs of version 4 as secrets, and print no secret in an error", async () => {
    const root = fleet.newModule();
    const secret = "b1946ac9-2e37-1c0e-9f5d-0123456789ab";
    root.write(resources({ api_key: { one: { valid_days: 30, key_wo: secret } } }));
    const output = await root.rejected("plan");
    expect(output).toContain("key_wo must be a UUID of version 4");
    expect(output).not.toContain(secret);
  });
});
