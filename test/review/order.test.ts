import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Step } from "../../provider/engine/index.ts";
import { reviewNamespace } from "../../provider/review/reviewNamespace.ts";
import { changedSteps } from "../../provider/review/reviewPlan.ts";
import { type NamespaceFixture, namespaceOf } from "./support/namespace.ts";
import { apiKey, device, estate, rule, ruleInputs, uidOf } from "./support/planned.ts";
import { creation, planOf, step, TENANT } from "./support/steps.ts";

const names = ["web-2", "web-10", "web-1", "db-1", "gate"];
const devices = names.map((name) => device(name, name.startsWith("web") ? ["prod"] : []));
const keys = ["kim-2", "kim-10", "ana", "zoe"].map((name, index) => ({
  fingerprint: `${index}${index}:${"00:".repeat(15)}`.slice(0, 47),
  name,
  username: `^(${name}|root)$`,
  filter: { hostname: ".*" },
}));
type Member = NonNullable<NamespaceFixture["members"]>[number];
const members = ["owner", "mia10", "mia2", "bob"].map(
  (name) =>
    ({
      id: `user-${name}`,
      email: `${name}@example.com`,
      role: name === "owner" ? "owner" : "observer",
      status: "accepted",
    }) as Member,
);
const apiKeys = ["ci-10", "ci-2", "ci-1"].map((name) => ({ ...apiKey(name, "observer"), expiresIn: -1 }));
const rules = [rule("2", { sourceIp: "^10\\." }), rule("10", { username: "^zoe$" }), rule("1")];
const seen = {
  sessions: 4,
  logins: ["ops", "deploy-10", "deploy-2"],
  addresses: ["10.0.0.10", "10.0.0.9", "192.168.1.1"],
};

const tagged = (name: string) => creation("DeviceTags", name, { device: name, tags: ["lab"] });
const joins = (name: string) =>
  creation("Member", name, { email: `${name}@example.org`, role: "operator", tenant: TENANT });
const steps: Step[] = [
  ...names.map(tagged),
  ...["max-10", "max-9", "eva"].map(joins),
  creation("FirewallRule", "late", { ...ruleInputs, priority: 8, tenant: TENANT }),
  creation("Namespace", "b-10", { name: "b-10" }),
  creation("Namespace", "b-9", { name: "b-9" }),
  step("delete", "Member", "bob", {
    before: { outputs: { userId: "user-bob", email: "bob@example.com", role: "observer" } },
    id: `${TENANT}/user-bob`,
  }),
];

const options = {
  home: TENANT,
  runningId: "me",
  actor: { kind: "user", role: "observer" } as const,
  protect: [{ label: "all", has: () => true }],
};

const shuffled = <T>(items: readonly T[]) =>
  fc.shuffledSubarray([...items], { minLength: items.length, maxLength: items.length });

const worlds = fc.record({
  devices: shuffled(devices),
  keys: shuffled(keys),
  members: shuffled(members),
  apiKeys: shuffled(apiKeys),
  logins: shuffled(seen.logins),
  addresses: shuffled(seen.addresses),
  steps: shuffled(steps),
});
type World = typeof worlds extends fc.Arbitrary<infer W> ? W : never;

async function reviewOf(world: World) {
  const whole: NamespaceFixture = {
    ...estate,
    devices: world.devices,
    policy: {
      devices: world.devices.map(({ uid, name, tags }) => ({ uid, name, tags })),
      keys: world.keys,
      rules,
    },
    members: world.members,
    apiKeys: world.apiKeys,
    seen: { ...seen, logins: world.logins, addresses: world.addresses },
  };
  const { review } = await reviewNamespace(namespaceOf(whole), planOf(...world.steps), options);
  return review;
}

describe("the lists of a review", () => {
  test("do not depend on the order of the service's answers or of the program's declarations", {
    tags: ["long"],
  }, async () => {
    const expected = await reviewOf({ devices, keys, members, apiKeys, ...seen, steps });
    await fc.assert(
      fc.asyncProperty(worlds, async (world) => {
        expect(await reviewOf(world)).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });

  test("are sorted in natural order, with numbers by value", async () => {
    const review = await reviewOf({ devices, keys, members, apiKeys, ...seen, steps });
    expect(review.members.map(({ email }) => email.split("@")[0])).toEqual(["bob", "eva", "max-9", "max-10"]);
    const unmanaged = review.coverage.unmanaged.filter(
      ({ kind }) => kind === "ApiKey" || kind === "PublicKey",
    );
    expect(unmanaged.map(({ name }) => name)).toEqual([
      "ana",
      "kim-2",
      "kim-10",
      "zoe",
      "ci-1",
      "ci-2",
      "ci-10",
    ]);
    const [shown = []] = [review.evaluated.addresses].map((all) =>
      all.filter((one) => seen.addresses.includes(one)),
    );
    expect(shown).toEqual(["10.0.0.9", "10.0.0.10", "192.168.1.1"]);
    const tagging = review.missingPermissions.find(({ operation }) => operation === "updateDeviceTags");
    expect(tagging?.resources).toEqual(["db-1", "gate", "web-1", "web-2", "web-10"]);
    const [line] = review.access ?? [];
    expect(line?.devices).toEqual(
      ["db-1", "gate", "web-1", "web-2", "web-10"]
        .filter((name) => line?.devices.includes(uidOf(name)))
        .map(uidOf),
    );
  });

  test("are sorted by kind and name for changes", () => {
    fc.assert(
      fc.property(shuffled(steps), (all) => {
        expect(changedSteps(all).map(({ name }) => name)).toEqual([
          "db-1",
          "gate",
          "web-1",
          "web-2",
          "web-10",
          "late",
          "bob",
          "eva",
          "max-9",
          "max-10",
          "b-9",
          "b-10",
        ]);
      }),
    );
  });
});
