import { expect, test } from "vitest";
import {
  type AccessPolicy,
  type AccessRule,
  DECIDER_NOUNS,
  deciderOf,
  evaluateAccess,
  type NamespacePolicy,
  type Principal,
} from "../../sdk/policy/index.ts";

const NOW = new Date("2026-11-30T12:00:00Z");
const [PAST, FUTURE] = ["2026-11-01T00:00:00Z", "2026-12-24T00:00:00Z"];

const ana = {
  fingerprint: "aa:aa",
  name: "ana",
  username: "^root$",
  filter: { tags: ["prod"] },
  expiresAt: FUTURE,
};
const ben = { fingerprint: "bb:bb", name: "ben", username: "", filter: {}, expiresAt: PAST };
const denial: AccessRule = {
  id: "12",
  action: "deny",
  active: true,
  priority: 7,
  username: ".*",
  sourceIp: "",
  filter: { hostname: "^web-1$" },
  expiresAt: FUTURE,
};
const exception: AccessRule = { ...denial, id: "13", action: "allow", priority: 8, expiresAt: undefined };
const devices = [
  { uid: "u1", name: "web-1", tags: [] },
  { uid: "u2", name: "db-1", tags: ["prod"] },
];
const legacy: NamespacePolicy = { devices, keys: [ana, ben], rules: [denial, exception] };

const maria: Principal = {
  id: "user-1",
  name: "maria@example.com",
  kind: "user",
  role: "operator",
  keys: [{ fingerprint: "SHA256:m", expiresAt: FUTURE, consumedAt: null, lastReauthAt: null }],
};
const operators: AccessPolicy = {
  id: "p1",
  name: "operators",
  subject: { type: "role", value: "operator" },
  filter: { tags: ["prod"] },
  logins: ["root", "*"],
  sourceIps: ["10.0.0.0/8"],
  action: "allow",
  requireReauth: true,
  reauthPeriod: 60,
};
const identity: NamespacePolicy = {
  ...legacy,
  identity: { policies: [operators], principals: [maria, { ...maria, id: "user-2", role: "observer" }] },
};
const accessOf = (policy: NamespacePolicy) =>
  evaluateAccess(policy, { logins: ["root"], addresses: ["10.0.0.1"] }, undefined, NOW);

test("public keys and firewall rules decide in legacy mode", () => {
  const decider = deciderOf(legacy);
  expect(decider).toMatchObject({ mode: "legacy", nouns: DECIDER_NOUNS.legacy, policies: [] });
  expect(decider.subjects).toEqual([ana, ben]);
  expect(decider.counts).toEqual({ keys: 2, rules: 2 });
  expect(decider.ends).toEqual([FUTURE, PAST, FUTURE]);
  expect(decider.objects).toMatchObject([
    { kind: "key", id: "aa:aa", name: "ana", noun: "key", effect: "admit", givesAccess: true },
    { kind: "key", id: "bb:bb" },
    { kind: "rule", id: "12", name: "12", details: "deny, priority 7", effect: "deny", givesAccess: false },
    { kind: "rule", id: "13", effect: "allow", givesAccess: false },
  ]);
  const [key, , rule] = decider.objects;
  expect(key?.patterns.map(({ field, pattern }) => [field, pattern])).toEqual([
    ["username", "^root$"],
    ["filter.hostname", ""],
  ]);
  expect([ana, ben].map((subject) => [key?.appliesTo(subject), rule?.appliesTo(subject)])).toEqual([
    [true, true],
    [false, true],
  ]);
});

test("access policies decide in identity mode, and keys and rules have no effect", () => {
  const decider = deciderOf(identity);
  expect(decider).toMatchObject({ mode: "identity", nouns: DECIDER_NOUNS.identity, policies: [operators] });
  expect(decider.counts).toEqual({ principals: 2, policies: 1 });
  expect(decider.ends).toEqual([FUTURE, FUTURE]);
  expect(decider.objects).toMatchObject([
    {
      kind: "accessPolicy",
      id: "p1",
      name: "operators",
      noun: "access policy",
      details: "allow",
      givesAccess: true,
      reauthentication: "counts for 60 seconds",
    },
  ]);
  expect(decider.subjects.map((subject) => decider.objects[0]?.appliesTo(subject))).toEqual([true, false]);
  expect(accessOf(identity)).toMatchObject({ keys: [], rules: [] });
});

test("an access policy states which re-authentication it demands", () => {
  const demandOf = (fields: Partial<AccessPolicy>) => {
    const policies = [{ ...operators, ...fields }];
    return deciderOf({ ...legacy, identity: { policies, principals: [] } }).objects[0]?.reauthentication;
  };
  expect(demandOf({ reauthPeriod: 1 })).toBe("counts for 1 second");
  expect(demandOf({ reauthPeriod: null })).toBe("needed at every login");
  expect(demandOf({ requireReauth: false })).toBe("not needed");
  expect(demandOf({ action: "deny" })).toBe("not needed");
});

test("the objects of an access are those in force", () => {
  // Strongest rule first.
  expect(accessOf(legacy).objects.map(({ id }) => id)).toEqual(["aa:aa", "13", "12"]);
  const inactive = { ...legacy, rules: [{ ...denial, active: false }] };
  expect(accessOf(inactive).objects.map(({ id }) => id)).toEqual(["aa:aa"]);
  expect(accessOf(identity).objects.map(({ id }) => id)).toEqual(["p1"]);
});

test("only access policies can deny every login by default", () => {
  expect(deciderOf({ ...legacy, keys: [], rules: [] }).deniesEverything).toBe(false);
  expect(deciderOf(identity).deniesEverything).toBe(false);
  const none = { ...identity, identity: { policies: [], principals: [maria] } };
  expect(deciderOf(none).deniesEverything).toBe(true);
  expect(accessOf(none).reached().isEmpty()).toBe(true);
});

test("a decider restricts the subjects of its policy, and keeps the other objects", () => {
  expect(deciderOf(legacy).withSubjects(({ id }) => id === "bb:bb")).toEqual({ ...legacy, keys: [ben] });
  const principals = identity.identity?.principals.slice(1);
  expect(deciderOf(identity).withSubjects(({ id }) => id === "user-2")).toEqual({
    ...identity,
    identity: { policies: [operators], principals },
  });
});

test("the example of a login prefers a login name and a device that a key admits", () => {
  expect(deciderOf(legacy).exampleFor(ana, ["guest", "root"])).toEqual({ login: "root", device: devices[1] });
  expect(deciderOf(legacy).exampleFor(ben, ["guest"])).toEqual({ login: "guest", device: devices[0] });
  expect(deciderOf(identity).exampleFor(maria, ["guest"])).toEqual({ login: "guest", device: devices[0] });
  expect(deciderOf({ ...identity, devices: [] }).exampleFor(maria, ["guest"])).toBeUndefined();
});
