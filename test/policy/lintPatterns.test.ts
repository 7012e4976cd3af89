import { expect, test } from "vitest";
import { clean, denyAll, device, found, key, rule } from "./lintSubjects.ts";

test.each([
  ["^(ana|bob)$", "login"],
  [".*", "login"],
  ["", "login"],
  ["^ana.*$", "login"],
  ["^.*ana$", "login"],
  ["(", "login"],
])("accepts the username %j", (username) => {
  expect(found("unanchored-pattern", { keys: [key({ username })] })).toEqual([]);
});

test.each([
  ["root", "notroot", 'Write login("root").'],
  ["^root", "rootx", 'Write login("root").'],
  ["root$", "notroot", 'Write login("root").'],
  ["ana|root", "notana", 'Write login("ana", "root").'],
  ["(?i)root", "notroot", "Write ^(?i)root$."],
  ["\\Qroot\\E", "notroot", "Write ^\\Qroot\\E$."],
  ["^root[0-9]", "root0x", "Write ^root[0-9]$."],
  ["[a-z]+", "1a", "Write ^[a-z]+$."],
  ["^a.c|d\\.e$", "notd.e", "Write ^(?:^a.c|d\\.e$)$."],
])("reports that the username %j admits %j", (username, login, suggestion) => {
  const [finding, ...more] = found("unanchored-pattern", { keys: [key({ username })] });
  expect(more).toEqual([]);
  expect(finding).toMatchObject({
    severity: "warning",
    object: { kind: "key", id: "fingerprint of laptop", name: "laptop" },
    field: "username",
    suggestion,
  });
  expect(finding?.evidence).toEqual({ counterexample: { login } });
  expect(finding?.message).toBe(
    `Key "laptop": username ${JSON.stringify(username)} is not anchored at both ends, so it also admits the login ${JSON.stringify(login)}.`,
  );
});

test("prefers an evaluated login as counterexample", () => {
  const [finding] = found(
    "unanchored-pattern",
    { keys: [key({ username: "root" })] },
    { evaluated: { logins: ["rootless"] } },
  );
  expect(finding?.evidence).toEqual({ counterexample: { login: "rootless" } });
});

test.each([
  ["10.0.0.1", "110.0.0.1", 'Write cidr("10.0.0.1").', "warning"],
  ["^10\\.0\\.0\\.1", "10.0.0.11", 'Write cidr("10.0.0.1").', "warning"],
  ["^10\\.", "10.1.0.1", 'Write cidr("10.0.0.0/8").', "info"],
  ["^10\\.20", "10.201.0.1", 'Write cidr("10.20.0.0/16").', "warning"],
  ["2001:db8::1", "2001:db8::11", "Write ^2001:db8::1$.", "warning"],
  ["^2001:db8:", "2001:db8:1::1", "Write ^2001:db8:.*$.", "info"],
])("reports that the source address %j admits %j", (sourceIp, address, suggestion, severity) => {
  const [finding, ...more] = found("unanchored-pattern", {
    rules: [rule("office", { sourceIp }), denyAll],
  });
  expect(more).toEqual([]);
  expect(finding).toMatchObject({
    severity,
    field: "sourceIp",
    suggestion,
    object: { kind: "rule", id: "office" },
  });
  expect(finding?.evidence).toEqual({ counterexample: { address } });
});

test.each([
  "^10\\.0\\.0\\.1$",
  "^10\\..*$",
  // This pattern needs no `$`: an address cannot have a further character after text that the pattern matches.
  "^10\\.0\\.0\\.(25[0-5])",
])("accepts the source address %j", (sourceIp) => {
  expect(found("unanchored-pattern", { rules: [rule("office", { sourceIp }), denyAll] })).toEqual([]);
});

test.each([
  ["web-1", "web-10", 'Write hostname("web-1").', "warning"],
  ["^web-", "web-1", "Write ^web-.*$.", "info"],
  [
    "web",
    "web-1",
    'Write hostname("web") for only that name, or ^.*web.*$ for all names that it matches now.',
    "warning",
  ],
])("reports that the host name %j admits %j", (hostname, name, suggestion, severity) => {
  const [finding] = found("unanchored-pattern", {
    devices: [...clean.devices, device("web-10")],
    keys: [key({ filter: { hostname } })],
  });
  expect(finding).toMatchObject({
    severity,
    field: "filter.hostname",
    suggestion,
    evidence: { counterexample: { device: name } },
  });
});

test("reports an unanchored pattern of a deny rule with severity info", () => {
  const rules = [
    rule("1", { action: "deny", username: "root" }),
    rule("2", { username: ".*", priority: 1 }),
    denyAll,
  ];
  expect(found("unanchored-pattern", { rules })).toMatchObject([{ severity: "info", object: { id: "1" } }]);
});

test("reports a pattern that does not compile, and the effect of the invalid pattern", () => {
  const policy = {
    keys: [key({ username: "(" })],
    rules: [
      rule("1", { sourceIp: "*" }),
      rule("2", { action: "deny", filter: { hostname: "[" }, priority: 20 }),
      denyAll,
    ],
  };
  const findings = found("broken-pattern", policy);
  expect(findings.map(({ message }) => message)).toEqual([
    'Key "laptop": username "(" is not a regular expression in RE2 syntax, so the key admits no login.',
    'Rule "2" (deny, priority 20): filter.hostname "[" is not a regular expression in RE2 syntax, so the rule matches every device.',
    'Rule "1" (allow, priority 10): sourceIp "*" is not a regular expression in RE2 syntax, so the rule allows nothing.',
  ]);
  expect(findings.every(({ severity }) => severity === "error")).toBe(true);
  expect(found("never-matches", policy)).toEqual([]);
});
