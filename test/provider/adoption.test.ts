import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { firewallRule } from "../../provider/resources/firewallRule.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { sharedFilledFleet } from "./support/filledFleet.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { Harness } from "./support/harness.ts";
import { sampleOf } from "./support/samples.ts";

const fleet = sharedFilledFleet();

let first: Harness;
let second: Harness;
beforeEach(() => {
  // Two stacks with separate states.
  first = new Harness(fleet.env, "first");
  second = new Harness(fleet.env, "second");
});
afterEach(async () => {
  await second.up({});
  // Both stacks managed the same object, which the second stack has just deleted. The refresh removes the object from
  // the first stack's state.
  await first.refresh();
  await first.up({});
  await first.close();
  await second.close();
});

const adoptable = ownDefinitions.filter((definition) => definition.inputs.adopt);
/** Resource types whose objects have no unique name. A namespace can contain two identical firewall rules. */
const WITHOUT_CONFLICTS = ["FirewallRule"];

/** Names of the second stack. With "first", both stacks have the same name and differ only in their states. */
const STACKS = ["second", "first"];

describe.each(adoptable.map((definition) => ({ type: definition.name, definition })))(
  "an existing $type",
  ({ type, definition }) => {
    const { base, changes } = sampleOf(definition);
    const program = (args: Record<string, unknown>) => ({ it: { type, args: fleet.here(args) } });
    const other = [...changes].find(
      ([field]) => !definition.inputs[field]?.replaces && !["forceDestroy", "name"].includes(field),
    );

    it.skipIf(WITHOUT_CONFLICTS.includes(type)).each(STACKS)(
      "of another state of stack %s stays unchanged, and the error contains the remedy",
      async (stack) => {
        second = new Harness(fleet.env, stack);
        await first.up(program(base));
        const [field, value] = other ?? [];
        const declared = field ? { ...base, [field]: value } : base;
        await expect(second.up(program(declared))).rejects.toThrow(
          field
            ? new RegExp(`adopt: .* already exists.* differs: ${field} is .*adopt: "overwrite"`)
            : /adopt: .* already exists.*adopt: true/,
        );
        expect(await first.refresh()).toEqual([]);
      },
    );

    it.each(STACKS)(
      "of another state of stack %s is adopted with adopt: true if it equals the declaration, and then needs no change",
      async (stack) => {
        second = new Harness(fleet.env, stack);
        await first.up(program(base));
        const before = first.state.get("it");
        expect(await second.up(program({ ...base, adopt: true }))).toEqual(["create it"]);
        expect(second.state.get("it")?.id).toBe(before?.id);
        expect(await second.preview(program(base))).toEqual([]);
        expect(await second.preview(program({ ...base, adopt: "overwrite" }))).toEqual([]);
        expect(await first.refresh()).toEqual([]);
      },
    );

    it.runIf(other && type !== "FirewallRule")(
      'is adopted and changed only with adopt: "overwrite"',
      async () => {
        await first.up(program(base));
        const [field = "", value] = other ?? [];
        const declared = { ...base, [field]: value };
        await expect(second.up(program({ ...declared, adopt: true }))).rejects.toThrow(/differs: /);
        expect(await first.refresh()).toEqual([]);
        await second.up(program({ ...declared, adopt: "overwrite" }));
        expect(await second.preview(program(declared))).toEqual([]);
        expect(await second.refresh()).toEqual([]);
        expect(await first.refresh()).toEqual(["update it"]);
      },
    );

    // Skipped with Terraform, which may delete the old resource before or after it creates the new one. So the provider
    // rejects such a plan and requires a moved block.
    it.skipIf(isTerraform)(
      "is adopted by a renamed resource, and stays when the old resource is deleted",
      async () => {
        await first.up(program(base));
        const renamed = { renamed: { type, args: fleet.here({ ...base, adopt: true }) } };
        expect(await first.up(renamed)).toEqual(["create renamed", "delete it"]);
        expect(await first.refresh()).toEqual([]);
        expect(await first.preview(renamed)).toEqual([]);
      },
    );
  },
);

it("each of several equal existing rules is adopted by one resource", async () => {
  const { base } = sampleOf(firewallRule.definition);
  const rules = (adopt: boolean) => {
    const args = fleet.here({ ...base, ...(adopt && { adopt }) });
    return Object.fromEntries(["a", "b", "c"].map((name) => [name, { type: "FirewallRule", args }]));
  };
  await first.up(rules(false));
  const ids = (stack: Harness) => ["a", "b", "c"].map((name) => stack.state.get(name)?.id).toSorted();
  await second.up(rules(true));
  expect(ids(second)).toEqual(ids(first));
  expect(new Set(ids(second)).size).toBe(3);
  expect(await second.preview(rules(false))).toEqual([]);
});

describe("duplicate declarations in one program", () => {
  /**
   * The expected error text. Terraform does not send resource names to providers, so the Terraform provider's error
   * contains none.
   */
  const same = (one: string, two: string) =>
    `${isTerraform ? ".*" : `${one} and ${two}`} manage the same object`;
  const pairs = ownDefinitions
    .filter((definition) => definition.identity)
    .map((definition) => ({ type: definition.name, args: sampleOf(definition).base }));

  it.each(pairs)(
    "are rejected at preview for two $type resources of one object, with both names",
    async ({ type, args }) => {
      const here = fleet.here(args);
      await expect(first.preview({ one: { type, args: here }, two: { type, args: here } })).rejects.toThrow(
        new RegExp(`\\w+: ${same(`${type} "two"`, `${type} "one"`)}`),
      );
      expect(first.state.size).toBe(0);
    },
  );

  it("are rejected for DeviceTags and DeviceTagAttachment on one device, with any selector of the device", async () => {
    const [device = ""] = await fleet.client
      .getDevices({ query: { perPage: 1 } })
      .then((all) => all.map((one) => one.name));
    const attachment = { type: "DeviceTagAttachment", args: { device, tag: "edge" } };
    const tags = { type: "DeviceTags", args: { device, tags: ["edge"], adopt: "overwrite" } };
    await expect(first.preview({ tags, attachment })).rejects.toThrow(
      new RegExp(same('DeviceTagAttachment "attachment"', 'DeviceTags "tags"')),
    );
  });

  it("are rejected before the second write if they select one device by name and by uid", async () => {
    const name = "tags-01";
    const devices = await fleet.client.getDevices({ query: { perPage: 100 } });
    const { uid = "" } = devices.find((device) => device.name === name) ?? {};
    const program = {
      byName: { type: "DeviceTags", args: { device: name, tags: ["edge"] } },
      byUid: { type: "DeviceTags", args: { device: uid, tags: ["edge"] } },
    };
    await expect(first.up(program)).rejects.toThrow(new RegExp(same('"byUid"', 'DeviceTags "byName"')));
    expect([...first.state.keys()]).toEqual(["byName"]);
  });

  it("do not include several DeviceTagAttachments on one device", async () => {
    const attach = (tag: string) => ({ type: "DeviceTagAttachment", args: { device: "attach-01", tag } });
    await first.up({ one: attach("edge"), two: attach("prod") });
    expect(await first.preview({ one: attach("edge"), two: attach("prod") })).toEqual([]);
  });
});

it("a rule of another state of the same stack is neither adopted, nor changed, nor deleted", async () => {
  const args = { action: "deny", sourceIp: ".*", username: "y", filter: { hostname: "z" } };
  const program = (priority: number) => ({ it: { type: "FirewallRule", args: { ...args, priority } } });
  const laptop = new Harness(fleet.env, "first");
  await first.up(program(1));
  await laptop.up(program(2));
  expect(laptop.state.get("it")?.id).not.toBe(first.state.get("it")?.id);
  expect(await first.refresh()).toEqual([]);
  await laptop.up({});
  await laptop.close();
  expect(await first.refresh()).toEqual([]);
});
