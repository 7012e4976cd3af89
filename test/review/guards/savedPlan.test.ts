import { describe, expect, test } from "vitest";
import type { Step } from "../../../provider/engine/index.ts";
import type { LiveObject } from "../../../provider/model/object.ts";
import { byKey, type NamespaceState } from "../../../provider/namespace/namespaceState.ts";
import { capturePlan } from "../../../provider/plan/saved/capturePlan.ts";
import { planDifferences } from "../../../provider/plan/saved/planDifferences.ts";
import { definitionsByName } from "../../../provider/resources/index.ts";
import { identityFixture, type NamespaceFixture, namespaceOf } from "../support/namespace.ts";
import {
  apiKey,
  device,
  estate,
  keyA,
  keyInputs,
  keyState,
  member,
  rule,
  workload,
} from "../support/planned.ts";
import { serviceAccount, sshKey } from "../support/policyObjects.ts";
import { creation, planOf, step, TENANT } from "../support/steps.ts";

const STEPS = [step("update", "PublicKey", "a", { ...keyState, after: keyInputs })];

const reviewed = (live: NamespaceFixture, steps: readonly Step[] = STEPS) =>
  captured(namespaceOf(live), steps);

function captured(live: NamespaceState, steps: readonly Step[] = STEPS) {
  const plan = { ...planOf(...steps), project: "fleet", stack: "prod" };
  const scope = {
    service: "https://gate.example.org",
    home: TENANT,
    refresh: true,
    live: [live],
  };
  return capturePlan(plan, scope);
}

/** Returns the differences between the review and the apply, as `place object field`. */
const differences = (
  now: Partial<NamespaceFixture>,
  steps: readonly Step[] = STEPS,
  before: Partial<NamespaceFixture> = {},
) =>
  planDifferences(reviewed({ ...estate, ...before }), reviewed({ ...estate, ...now }, steps)).differences.map(
    (difference) => [difference.in, difference.object, difference.field].filter(Boolean).join(" "),
  );

test("an unchanged namespace and plan do not differ", () => {
  expect(differences({})).toEqual([]);
});

describe("a change of a trusted workload between the review and the apply is a difference:", () => {
  test.each<[string, Partial<typeof workload>]>([
    ["maxSessionMinutes", { maxSessionMinutes: 1440 }],
    ["audience", { audience: "another" }],
    ["claims", { claims: { repository: "acme/fleet" } }],
    ["issuer", { issuer: "https://gitlab.example.org" }],
    ["role", { role: "administrator" }],
    ["singleUse", { singleUse: false }],
    ["name", { name: "renamed" }],
  ])("%s", (field, change) => {
    const now = { ...workload, ...change };
    expect(differences({ trustedWorkloads: [now] })).toEqual([
      `service TrustedWorkload "${now.name}" ${field}`,
    ]);
  });

  test("creation and deletion", () => {
    const added = { ...workload, id: "65a1f0c2d3e4b5a697887767", name: "second" };
    expect(differences({ trustedWorkloads: [workload, added] })).toEqual([
      'service TrustedWorkload "second"',
    ]);
    expect(differences({ trustedWorkloads: [] })).toEqual(['service TrustedWorkload "deploy"']);
  });
});

describe("a change of a key, a rule, a member or an API key is a difference:", () => {
  const [, keyB] = estate.policy.keys;
  const keys = (change: object) => ({
    policy: { ...estate.policy, keys: [{ ...keyA, ...change }, ...(keyB ? [keyB] : [])] },
  });
  const rules = (change: object) => ({
    policy: { ...estate.policy, rules: [rule("1", change), ...estate.policy.rules.slice(1)] },
  });

  test.each<[string, Partial<NamespaceFixture>, string]>([
    ["the login names of a key", keys({ username: ".*" }), 'PublicKey "a" username'],
    ["the devices of a key", keys({ filter: { tags: ["lab"] } }), 'PublicKey "a" filter'],
    ["the end of a key", keys({ expiresAt: "2030-01-01T00:00:00Z" }), 'PublicKey "a" expiresAt'],
    ["the owner of a key", keys({ owner: "bob@example.com" }), 'PublicKey "a" owner'],
    ["the action of a rule", rules({ action: "allow" }), 'FirewallRule "1" action'],
    ["the priority of a rule", rules({ priority: 6 }), 'FirewallRule "1" priority'],
    ["the addresses of a rule", rules({ sourceIp: "^10\\." }), 'FirewallRule "1" sourceIp'],
    ["the activity of a rule", rules({ active: false }), 'FirewallRule "1" active'],
    ["the end of a rule", rules({ expiresAt: "2030-01-01T00:00:00Z" }), 'FirewallRule "1" expiresAt'],
    [
      "the role of a member",
      { members: [member("owner", "owner"), member("bob", "administrator")] },
      'Member "bob@example.com" role',
    ],
    ["the role of an API key", { apiKeys: [apiKey("ci", "administrator")] }, 'ApiKey "ci" role'],
    ["an added API key", { apiKeys: [apiKey("ci", "observer"), apiKey("x", "observer")] }, 'ApiKey "x"'],
    ["a removed member", { members: [member("owner", "owner")] }, 'Member "bob@example.com"'],
  ])("%s", (_, now, difference) => {
    expect(differences(now)).toEqual([`service ${difference}`]);
  });
});

describe("a change of values that neither an input nor a lasting output contains is a difference:", () => {
  /** Returns the differences if only the objects of a kind change. */
  const changed = (
    kind: "PublicKey" | "ServiceAccount" | "InstallKey",
    state: NamespaceState,
    change: (object: LiveObject) => LiveObject,
  ) => {
    const objects = state.of(definitionsByName[kind]) ?? new Map<string, LiveObject>();
    const now = state.withObjects(
      definitionsByName[kind],
      new Map(Array.from(objects, ([key, object]) => [key, change(object)])),
    );
    return planDifferences(captured(state), captured(now)).differences.map(
      ({ object, field }) => `${object} ${field}`,
    );
  };

  test("the cleared owner of a former member's key", () => {
    const state = namespaceOf({ ...estate, policy: { ...estate.policy, keys: [keyA] } });
    const owned = (ownerId: string) => (object: LiveObject) => ({
      ...object,
      state: { ...object.state, owner: "", ownerId },
    });
    const [key] = state.of(definitionsByName.PublicKey)?.values() ?? [];
    if (!key) throw new Error("the namespace has no key");
    const before = state.withObjects(definitionsByName.PublicKey, byKey([owned("65f1")(key)]));
    expect(changed("PublicKey", before, owned(""))).toEqual(['PublicKey "a" owner']);
  });

  test("the role and a further SSH key of a service account, but no login", () => {
    const [one, two] = [sshKey("a"), sshKey("b")];
    const serviceAccounts = [serviceAccount("deploy", { keys: [one] })];
    const state = namespaceOf({ ...estate, identity: identityFixture({ serviceAccounts }) });
    const changedFacts = (facts: object) =>
      changed("ServiceAccount", state, (object) => ({ ...object, facts: { ...object.facts, ...facts } }));
    expect(changedFacts({ role: "operator" })).toEqual(['ServiceAccount "deploy" role']);
    expect(changedFacts({ identities: [one, two] })).toEqual(['ServiceAccount "deploy" keys']);
    expect(changedFacts({ identities: [{ ...one, lastReauthAt: "2026-01-01T00:00:00Z" }] })).toEqual([]);
  });

  test("the renewal of an install key", () => {
    const expiresAt = "2027-01-01T00:00:00.000Z";
    const keys = [{ id: "k1", name: "floor", mode: "automatic", validDays: 30, expiresAt }];
    const renewed = (object: LiveObject) => ({
      ...object,
      state: { ...object.state, expiresAt: "2028-01-01T00:00:00.000Z" },
    });
    const state = namespaceOf({ ...estate, installKeys: keys });
    expect(changed("InstallKey", state, renewed)).toEqual(['InstallKey "floor" expiresAt']);
  });

  test("the deletion of one of two objects with the same key", () => {
    const left = apiKey("ci", "administrator");
    const both = { apiKeys: [apiKey("ci", "observer"), left] };
    expect(differences({ apiKeys: [left] }, STEPS, both)).toEqual([
      'service ApiKey "ci" role',
      'service ApiKey "ci"',
    ]);
  });
});

describe("a change of the namespace is a difference:", () => {
  test("a list that the credential may no longer read", () => {
    for (const unread of [{ members: undefined }, { apiKeys: undefined }, { trustedWorkloads: undefined }])
      expect(differences(unread as Partial<NamespaceFixture>)).toEqual([`service ${TENANT}`]);
  });

  test("the tags and the name of an accepted device", () => {
    const tagged = estate.devices.map((one) => (one.name === "web-01" ? { ...one, tags: ["lab"] } : one));
    expect(differences({ devices: tagged })).toEqual(['service device "web-01" tags']);
    const renamed = estate.devices.map((one) => (one.name === "web-01" ? { ...one, name: "web-09" } : one));
    expect(differences({ devices: renamed })).toEqual(['service device "web-09" name']);
  });

  test("but no new device, since devices enroll without a plan", () => {
    expect(differences({ devices: [...estate.devices, device("web-09", ["prod"])] })).toEqual([]);
  });
});

describe("a change of the program or the state is a difference:", () => {
  test("a declared field", () => {
    const after = { ...keyInputs, username: ".*" };
    expect(differences({}, [step("update", "PublicKey", "a", { ...keyState, after })])).toEqual([
      'program PublicKey "a" username',
    ]);
  });

  test("a field in the state", () => {
    const before = { outputs: { ...keyState.before.outputs, username: ".*" } };
    const now = step("update", "PublicKey", "a", { ...keyState, before, after: keyInputs });
    expect(differences({}, [now])).toEqual(['state PublicKey "a" username']);
  });

  test("the object of a resource", () => {
    const now = step("update", "PublicKey", "a", {
      ...keyState,
      id: `${TENANT}/aa:bb`,
      after: keyInputs,
    });
    expect(differences({}, [now])).toEqual(['service PublicKey "a", matched object id']);
  });

  test("an added step, a removed step and another operation", () => {
    const added = creation("PublicKey", "x", keyInputs);
    expect(differences({}, [...STEPS, added])).toEqual(['program PublicKey "x"']);
    expect(differences({}, [])).toEqual(['program PublicKey "a"']);
    const replaced = step("replace", "PublicKey", "a", { ...keyState, after: keyInputs });
    expect(differences({}, [replaced])).toEqual(['state PublicKey "a"']);
  });
});
