import { expect, test } from "vitest";
import { type LintCode, lintRules } from "../../sdk/policy/index.ts";
import { clean, denyAll, device, found, key, linted, rule } from "./lintSubjects.ts";

test("the clean policy has no findings", () => {
  expect(linted({})).toEqual([]);
});

test("a realistic policy has no findings", () => {
  const prod = { tags: ["prod"] };
  const policy = {
    devices: [
      ...["web-1", "web-2", "web-10"].map((name) => device(name, "prod", "web")),
      device("db-1", "prod", "db"),
      device("lab-1", "lab"),
    ],
    keys: [
      key({ name: "ana", username: "^(ana|root)$", filter: prod }),
      key({ name: "bob", username: "^bob$", filter: { hostname: "^web-.*$" } }),
      key({ name: "deploy", username: "^deploy$", filter: { tags: ["web", "db"] } }),
      key({ name: "lab", username: ".*", filter: { tags: ["lab"] } }),
    ],
    rules: [
      rule("office", { username: ".*", sourceIp: "^10\\.1\\.[0-9]{1,3}\\.[0-9]{1,3}$", filter: prod }),
      rule("deploy", {
        username: "^deploy$",
        sourceIp: "^10\\.9\\.0\\.1$",
        filter: { hostname: "^web-.*$" },
      }),
      rule("no root", {
        action: "deny",
        priority: 20,
        username: "^root$",
        sourceIp: "",
        filter: { tags: ["db"] },
      }),
      rule("lab", { username: ".*", sourceIp: ".*", filter: { tags: ["lab"] } }),
      denyAll,
    ],
  };
  const options = {
    evaluated: { logins: ["ana", "bob", "deploy"], addresses: ["10.1.2.3", "10.9.0.1"] },
    apiKeys: [{ name: "ci", role: "administrator", expiresAt: new Date("2026-06-01T00:00:00Z") }],
    invitations: [],
    now: new Date("2026-01-01T00:00:00Z"),
  };
  expect(linted(policy, options)).toEqual([]);
});

test("inactive rules have no findings", () => {
  const off = { active: false };
  const rules = [rule("1", { ...off, username: "(" }), rule("2", { ...off, filter: { tags: ["gone"] } })];
  expect(linted({ rules: [...clean.rules, ...rules] })).toEqual([]);
});

test("an empty policy has no findings", () => {
  expect(linted({ devices: [], keys: [], rules: [] })).toEqual([]);
});

test("names with quotes and line breaks are escaped in the message", () => {
  const [finding] = found("matches-everything", {
    keys: [key({ name: 'a".\nKey "b', username: "", filter: {} })],
  });
  expect(finding?.message).toBe('Key "a\\".\\nKey \\"b" admits every login on every device.');
});

test("each finding has a severity that the definition of its rule allows", () => {
  const codes = Object.keys(lintRules) as LintCode[];
  const policy = {
    keys: [key({ username: "root" }), key({ username: "(" }), key({ username: "", filter: {} })],
    rules: [rule("1"), rule("2"), rule("3", { action: "deny" }), rule("4", { filter: { tags: ["gone"] } })],
  };
  const findings = linted(policy);
  expect(findings.length).toBeGreaterThan(4);
  for (const { rule: code, severity } of findings) {
    expect(codes).toContain(code);
    expect(lintRules[code].severities).toContain(severity);
  }
});
