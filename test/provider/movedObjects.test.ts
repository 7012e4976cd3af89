import { describe, expect, it } from "vitest";
import { firewallRule } from "../support/policy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { Harness, type Program, testHarness } from "./support/harness.ts";
import { sshKeyLine } from "./support/programs.ts";

// Objects that move from one resource of a program to another within one run. Engines delete resources last, and know
// only the ids of their objects. A deletion must not remove an object that another resource manages at that time.

const fleet = sharedFleet(["ana", "bob"]);
const harness = testHarness(() => fleet.env);

const tagsOf = async (uid: string) => (await fleet.client.getDevice({ params: { uid } })).tags.sort();
const key = (data: string, name = "laptop") => ({
  type: "PublicKey",
  args: { name, data, username: ".*", filter: { hostname: ".*" } },
});
const keyNames = async () => (await fleet.client.getPublicKeys()).map(({ name }) => name).sort();

describe("an object that another resource manages at the end of the run", () => {
  // Skipped with Terraform, which does not run all deletions after the creations.
  it.skipIf(isTerraform)(
    "stays after the deletion of its previous resource, even if a Device has onDestroy: remove",
    async () => {
      const uid = await fleet.enroll("moved-device");
      const device = { type: "Device", args: { device: "moved-device", onDestroy: "remove" } };
      await harness.up({ before: device });
      await harness.up({ after: device });
      expect((await fleet.client.getDevice({ params: { uid } })).status).toBe("accepted");
      expect(await harness.refresh()).toEqual([]);
    },
  );

  it.skipIf(isTerraform)(
    "stays if two resources in the state have this object and one of the resources is deleted",
    async () => {
      const line = sshKeyLine();
      await harness.up({ one: key(line) });
      const entry = harness.state.get("one");
      if (entry) harness.state.set("two", entry);
      expect(await harness.up({ one: key(line) })).toEqual(["delete two"]);
      expect(await keyNames()).toEqual(["laptop"]);
      expect(await harness.refresh()).toEqual([]);
    },
  );

  // Skipped with Terraform, which may delete the old resource before or after it creates the new one. So the provider
  // rejects such a plan.
  it.skipIf(isTerraform)(
    "stays if devices move to the previous resource, and only the first device loses its tags",
    async () => {
      const names = ["place-a", "place-b", "place-c"];
      const uids = [];
      for (const name of names) uids.push(await fleet.enroll(name));
      const program = (devices: string[]) =>
        Object.fromEntries(
          devices.map((device, index) => [
            `slot-${index}`,
            { type: "DeviceTags", args: { device, tags: ["edge"] } },
          ]),
        );
      await harness.up(program(names));
      await harness.up(program(names.slice(1)));
      expect(await Promise.all(uids.map(tagsOf))).toEqual([[], ["edge"], ["edge"]]);
      expect(await harness.refresh()).toEqual([]);
    },
  );

  it("loses only the tags that no attachment manages", async () => {
    const uid = await fleet.enroll("one-by-one");
    await harness.up({ all: { type: "DeviceTags", args: { device: "one-by-one", tags: ["edge", "old"] } } });
    const attachment = {
      type: "DeviceTagAttachment",
      args: { device: "one-by-one", tag: "edge", adopt: true },
    };
    await harness.up({ one: attachment });
    expect(await tagsOf(uid)).toEqual(["edge"]);
    expect(await harness.refresh()).toEqual([]);
  });

  it("keeps a tag if DeviceTags now manages the tag in place of an attachment", async () => {
    const uid = await fleet.enroll("all-at-once");
    await harness.up({ one: { type: "DeviceTagAttachment", args: { device: "all-at-once", tag: "edge" } } });
    const args = { device: "all-at-once", tags: ["core", "edge"], adopt: "overwrite" };
    await harness.up({ all: { type: "DeviceTags", args } });
    expect(await tagsOf(uid)).toEqual(["core", "edge"]);
    expect(await harness.refresh()).toEqual([]);
  });
});

// Skipped with Terraform, which destroys both keys before it creates the new ones.
it.skipIf(isTerraform)(
  "two PublicKeys that exchange their data are rejected, since another resource of the program manages the key",
  async () => {
    const [first, second] = [sshKeyLine(), sshKeyLine()];
    await harness.up({ one: key(first), two: key(second) });
    await expect(harness.up({ one: key(second), two: key(first) })).rejects.toThrow(
      /adopt: .* already exists .*managed by another resource of this program/,
    );
    expect(await fleet.client.getPublicKeys()).toHaveLength(2);
  },
);

describe("the name of a resource whose object moved", () => {
  const rule = (priority: number) => firewallRule("deny", priority);
  const namespace = (name: string) => ({ type: "Namespace", args: { name } });
  const member = (name: string) => ({
    type: "Member",
    args: { email: `${name}@example.com`, role: "observer" },
  });
  const attachment = (tag: string) => ({ type: "DeviceTagAttachment", args: { device: "passing", tag } });

  type Case = [kind: string, one: Program[string], two: Program[string]];
  const twoRules: Case = ["FirewallRule with equal inputs", rule(1), rule(1)];

  it.each<Case>([
    ["PublicKey", key(sshKeyLine(), "one"), key(sshKeyLine(), "two")],
    ["FirewallRule", rule(1), rule(2)],
    // Skipped with Terraform: it sends no resource name, so the provider cannot know whether an earlier run created the
    // equal rule.
    ...(isTerraform ? [] : [twoRules]),
    ["Namespace", namespace("passed-one"), namespace("passed-two")],
    ["Member", member("ana"), member("bob")],
    ["DeviceTagAttachment", attachment("one"), attachment("two")],
  ])("is available for another %s, whose deletion keeps the moved object", async (kind, one, two) => {
    if (kind === "DeviceTagAttachment") await fleet.enroll("passing");
    await harness.up({ before: one });
    const { id } = harness.state.get("before") ?? {};
    harness.rename("before", "after");
    const program = { after: one, before: two };
    // The moved resource claims its object. Terraform sends no resource name, and the tags of a device have no single
    // declarer.
    const claims = isTerraform || kind === "DeviceTagAttachment" ? [] : ["update after"];
    expect((await harness.up(program)).toSorted()).toEqual(["create before", ...claims]);
    expect(harness.state.get("after")?.id).toBe(id);
    expect(harness.state.get("before")?.id).not.toBe(id);
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program)).toEqual([]);
    expect(await harness.up({ after: one })).toEqual(["delete before"]);
    expect(await harness.refresh()).toEqual([]);
  });
});

describe("two stacks of one name without shared state", () => {
  it("have one API key each: the second stack does not revoke the key of the first", async () => {
    const other = new Harness(fleet.env);
    const program = { ci: { type: "ApiKey", args: { validDays: 30, role: "observer" } } };
    await harness.up(program);
    await other.up(program);
    expect(await harness.refresh()).toEqual([]);
    expect(await fleet.client.listApiKeys()).toHaveLength(2);
    await other.up({});
    expect(await harness.refresh()).toEqual([]);
    await other.close();
  });
});

describe("an object that no resource manages at the end of the run", () => {
  it("is deleted with its resource, and by a replacement", async () => {
    const [first, second] = [sshKeyLine(), sshKeyLine()];
    await harness.up({ one: key(first, "first") });
    expect(await harness.up({ one: key(second, "second") })).toEqual(["replace one data"]);
    expect(await keyNames()).toEqual(["second"]);
    await harness.up({});
    expect(await keyNames()).toEqual([]);
  });

  it("is deleted by an engine's replacement without differences", async () => {
    const rule = firewallRule("deny", 1);
    await harness.up({ rule });
    const before = harness.state.get("rule")?.id;
    expect(await harness.up({ rule }, { force: ["rule"] })).toEqual(["replace rule id"]);
    const rules = await fleet.client.getFirewallRules();
    expect(rules.map(({ id }) => `${fleet.tenant}/${id}`)).toEqual([harness.state.get("rule")?.id]);
    expect(harness.state.get("rule")?.id).not.toBe(before);
  });
});
