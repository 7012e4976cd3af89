import { expect, test } from "vitest";
import { expiryOf } from "../../sdk/policy/index.ts";
import { clean, key, linted, rule, short } from "./lintSubjects.ts";

const now = new Date("2026-01-01T00:00:00Z");
const inDays = (days: number) => new Date(now.getTime() + days * 86_400_000);

test("reports API keys without expiry that can change the policy", () => {
  const apiKeys = ["observer", "operator", "administrator", "owner"].flatMap((role) => [
    { name: `${role} for ever`, role, expiresAt: null },
    { name: role, role, expiresAt: inDays(90) },
  ]);
  expect(linted({}, { apiKeys, now })).toMatchObject([
    {
      rule: "api-key-without-expiry",
      severity: "error",
      object: { kind: "apiKey", id: "administrator for ever" },
      message: 'API key "administrator for ever" has the role administrator and no expiry.',
    },
    { rule: "api-key-without-expiry", object: { id: "owner for ever" } },
  ]);
});

test("reports API keys and invitations that expire soon, and no expired ones", () => {
  const apiKeys = [-1, 0, 1, 14, 15].map((days) => ({
    name: `${days}`,
    role: "observer",
    expiresAt: inDays(days),
  }));
  const invitations = [
    { email: "bob@example.com", role: "operator", expiresAt: inDays(7) },
    { email: "eve@example.com", role: "operator", expiresAt: null },
  ];
  expect(linted({}, { apiKeys, invitations, now })).toMatchObject([
    { rule: "expires-soon", severity: "warning", object: { kind: "apiKey", id: "1" } },
    {
      object: { id: "14" },
      message: 'API key "14" (observer) expires at 2026-01-15T00:00:00.000Z, within 14 days.',
      evidence: { expiresAt: "2026-01-15T00:00:00.000Z" },
    },
    { rule: "expires-soon", severity: "info", object: { kind: "invitation", id: "bob@example.com" } },
  ]);
  expect(short(linted({}, { apiKeys, invitations, now, expiresWithin: 1 }))).toEqual(["expires-soon 1"]);
});

test("reads the service's representations of no expiry", () => {
  expect(expiryOf(-1)).toBeNull();
  expect(expiryOf("0001-01-01T00:00:00Z")).toBeNull();
  expect(expiryOf(1_767_225_600)).toEqual(now);
  expect(expiryOf("2026-01-01T00:00:00Z")).toEqual(now);
  expect(() => expiryOf("never")).toThrow(RangeError);
});

const text = (days: number) => inDays(days).toISOString();

test("reports expired keys, rules and memberships, and no other problems of expired objects", () => {
  const policy = {
    ...clean,
    keys: [
      key({ name: "old", username: "root", filter: { hostname: "^nowhere$" }, expiresAt: text(0) }),
      key({ name: "new", expiresAt: text(366) }),
    ],
    rules: [...clean.rules, rule("temporary", { username: "ro", expiresAt: text(-3) })],
    members: [{ id: "a", email: "ana@example.com", isAccepted: true, expiresAt: text(-1) }],
  };
  expect(linted(policy, { now })).toMatchObject([
    {
      rule: "expired",
      severity: "info",
      object: { kind: "key", name: "old" },
      message: 'Key "old" expired at 2026-01-01T00:00:00.000Z.',
      suggestion: "Delete the lines that declare it.",
    },
    { rule: "expired", object: { kind: "rule", id: "temporary" } },
    { rule: "expired", object: { kind: "member", id: "ana@example.com" } },
  ]);
});

test("reports ends more than a year ahead", () => {
  const keys = [key({ name: "year", expiresAt: text(366) }), key({ name: "late", expiresAt: text(367) })];
  expect(linted({ keys }, { now })).toMatchObject([
    { rule: "expires-late", severity: "warning", object: { name: "late" } },
  ]);
});

test("reports rules that deny logins until their end, and no other rules", () => {
  const expiresAt = text(1);
  const denying = { action: "deny" } as const;
  const rules = [
    ...clean.rules,
    rule("frozen", { ...denying, username: "ro", expiresAt }),
    rule("expired", { ...denying, username: "ro1", expiresAt: text(0) }),
    rule("lasting", { ...denying, username: "ro2" }),
    rule("inactive", { ...denying, username: "ro3", expiresAt, active: false }),
    rule("allowing", { username: "ro4", expiresAt }),
  ];
  const found = linted({ rules }, { now }).filter(({ rule: code }) => code === "expiring-deny");
  expect(found).toMatchObject([
    {
      rule: "expiring-deny",
      severity: "warning",
      object: { id: "frozen" },
      message: expect.stringMatching(/^Rule .*frozen.* denies logins only until 2026-01-02T00:00:00.000Z.$/),
    },
  ]);
});

test("reports keys without an owner once a key has one, and keys whose owner is not a member", () => {
  const members = [{ id: "a", email: "ana@example.com", isAccepted: true }];
  const keys = [key({ name: "shared" }), key({ name: "ana", owner: "a" }), key({ name: "bob", owner: "b" })];
  expect(linted({ keys, members }, { now })).toMatchObject([
    { rule: "key-without-owner", severity: "info", object: { name: "shared" } },
    { rule: "key-without-owner", severity: "warning", object: { name: "bob" } },
  ]);
  expect(linted({ keys: [key({ name: "shared" })], members }, { now })).toEqual([]);
});
