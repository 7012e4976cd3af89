import { expect, test } from "vitest";
import { expiryOf } from "../../sdk/policy/index.ts";
import { linted, short } from "./lintSubjects.ts";

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
      severity: "warning",
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
