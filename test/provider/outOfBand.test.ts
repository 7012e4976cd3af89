import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { outOfBandChanges } from "../../provider/lifecycle/outOfBand.ts";
import type { InputField } from "../../provider/model/fields.ts";
import { canonical } from "../../provider/model/values.ts";
import { definitions } from "../../provider/resources/index.ts";
import { memberId } from "../support/fleet.ts";
import { keyData, publicKey } from "../support/policy.ts";
import { type LossyProxy, startLossyProxy } from "../support/proxy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { type Program, testHarness } from "./support/harness.ts";

const fleet = sharedFleet(["ana"]);
let proxy: LossyProxy;
const harness = testHarness(() => ({ ...fleet.env, GATEHOUSE_URL: proxy.url }));
beforeAll(async () => {
  proxy = await startLossyProxy(fleet.service.url);
  await fleet.enroll("web-01");
});
afterAll(() => proxy.stop());

const RULE = { priority: 7, sourceIp: "^203\\.", username: ".*", filter: { hostname: ".*" } };
const rule = (more: object = {}): Program => ({
  it: { type: "FirewallRule", args: { action: "deny", ...RULE, active: true, ...more } },
});
const liveRule = async () => (await fleet.client.getFirewallRules())[0];

/** Disables the rule, as an administrator does during an incident. */
async function disable(): Promise<void> {
  const { id = "" } = (await liveRule()) ?? {};
  await fleet.client.updateFirewallRule({
    params: { id },
    body: { action: "deny", ...RULE, active: false },
  });
}

describe("an update of one field", () => {
  it("is rejected if another field was changed manually, with the field, both values and the actor", {
    tags: ["long"],
  }, async () => {
    await harness.up(rule());
    await disable();
    await expect(harness.up(rule({ priority: 8 }))).rejects.toThrow(
      /active is false on the service, and true in the state; last changed by user admin from .*updateFirewallRule.*changed_out_of_band/s,
    );
    expect(await liveRule()).toMatchObject({ active: false, priority: 7 });
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(await harness.up(rule({ priority: 8 }))).toEqual(["update it"]);
    expect(await liveRule()).toMatchObject({ active: true, priority: 8 });
  });

  it("is rejected if the object changes between the read and the write", async () => {
    await harness.up(rule());
    // The administrator is faster than the write, which the service therefore rejects.
    proxy.before((method) => (method === "PUT" ? disable() : undefined));
    await expect(harness.up(rule({ priority: 8 }))).rejects.toThrow(/active is false on the service/);
    expect(await liveRule()).toMatchObject({ active: false, priority: 7 });
  });

  it("is repeated if another actor changes the object to a value that equals the declaration", async () => {
    await harness.up(rule());
    proxy.before((method) => (method === "PUT" ? disable() : undefined));
    expect(await harness.up(rule({ priority: 8, active: false }))).toEqual(["update it"]);
    expect(await liveRule()).toMatchObject({ active: false, priority: 8 });
    expect(await harness.refresh()).toEqual([]);
  });

  it("succeeds if its answer is lost", async () => {
    await harness.up(rule());
    proxy.loseAnswer((method) => method === "PUT");
    expect(await harness.up(rule({ priority: 8 }))).toEqual(["update it"]);
    expect(await liveRule()).toMatchObject({ priority: 8 });
    expect(await harness.refresh()).toEqual([]);
  });

  /** A tag that a device and the filter of a key have. */
  const tagged = (tag: string, name: string, filter: object, tags: string[]): Program => ({
    tag: { type: "Tag", args: { name: tag } },
    tags: { type: "DeviceTags", args: { device: "web-01", tags } },
    key: publicKey(name, "^ana$", { ...filter }, { data: keyData("tagged") }),
  });

  it.each([
    ["accepts a tag that the same run renamed", ["edge"], "ana (on call)", { tags: ["core"] }],
    [
      "that replaces a filter or tags accepts a tag that the same run renamed",
      ["edge", "zone"],
      "ana",
      { hostname: "^web-" },
    ],
  ])("%s", async (_fact, tags, name, filter) => {
    await harness.up(tagged("edge", "ana", { tags: ["edge"] }, tags));
    expect(await harness.up(tagged("core", name, filter, ["core"]))).toEqual([
      "update key",
      "update tag",
      "update tags",
    ]);
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ name, filter }]);
    expect(await harness.refresh()).toEqual([]);
  });

  it("that no request contains ignores manual changes", async () => {
    const member = (args: object): Program => ({
      it: { type: "Member", args: { email: "ana@example.com", role: "observer", ...args } },
    });
    await harness.up(member({}));
    const uid = await memberId(fleet, "ana@example.com");
    await fleet.client.updateMember({ params: { tenant: fleet.tenant, uid }, body: { role: "operator" } });
    expect(await harness.up(member({ allowLockout: true }))).toEqual(["update it"]);
    const after = await fleet.client.getNamespace({ params: { tenant: fleet.tenant } });
    expect(after.members.find(({ id }) => id === uid)).toMatchObject({ role: "operator" });
  });
});

/** Returns three values of an input that differ in their canonical form. */
function differentValues(field: InputField): unknown[] {
  const candidates: unknown[][] = [
    ["before", "declared", "live"],
    [["before"], ["declared"], ["live"]],
    [{ sessionMaxMinutes: 1 }, { sessionMaxMinutes: 2 }, { sessionMaxMinutes: 3 }],
    [{ userId: "1" }, { userId: "2" }, { userId: "3" }],
  ];
  const isDifferent = (values: readonly unknown[]) => {
    try {
      const texts = values.map((value) => JSON.stringify(canonical(field, value)));
      return new Set(texts).size === values.length;
    } catch {
      // The input has values of another type.
      return false;
    }
  };
  return candidates.find(isDifferent) ?? [];
}

it("compares each declared input of each resource type that a request contains", () => {
  for (const definition of definitions) {
    for (const [name, field] of Object.entries(definition.inputs)) {
      // A key is part of the identity of its object, and no update changes it.
      if (name === "data") continue;
      const [before, declared, live] = differentValues(field);
      const compared = outOfBandChanges(
        { definition, state: { [name]: before }, inputs: { [name]: declared } },
        { [name]: live },
      );
      const isCompared = !field.transient && !field.isLocal && !field.secret;
      expect(
        compared.map((change) => change.field),
        `${definition.name} ${name}`,
      ).toEqual(isCompared ? [name] : []);
    }
  }
});
