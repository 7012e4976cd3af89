import { expect, test } from "vitest";
import { expiryOf, type LintCode, lintRules } from "../../sdk/dist/policy/index.js";
import { clean, denyAll, device, found, key, linted, rule, short } from "./lintSubjects.ts";

test("a policy that says what it means has no findings", () => {
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
    domain: { logins: ["ana", "bob", "deploy"], addresses: ["10.1.2.3", "10.9.0.1"] },
    apiKeys: [{ name: "ci", role: "administrator", expiresAt: new Date("2026-06-01T00:00:00Z") }],
    invitations: [],
    now: new Date("2026-01-01T00:00:00Z"),
  };
  expect(linted(policy, options)).toEqual([]);
});

test("inactive rules are left alone", () => {
  const off = { active: false };
  const rules = [rule("1", { ...off, username: "(" }), rule("2", { ...off, filter: { tags: ["gone"] } })];
  expect(linted({ rules: [...clean.rules, ...rules] })).toEqual([]);
});

test("an empty policy has no findings", () => {
  expect(linted({ devices: [], keys: [], rules: [] })).toEqual([]);
});

test.each([
  ["^(ana|bob)$", "login"],
  [".*", "login"],
  ["", "login"],
  ["^ana.*$", "login"],
  ["^.*ana$", "login"],
  ["(", "login"],
])("the username %j says what it admits", (username) => {
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
])("the username %j admits %j", (username, login, suggestion) => {
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
    `Key "laptop": username ${JSON.stringify(username)} is not anchored at both ends, it also admits the login ${JSON.stringify(login)}.`,
  );
});

test("a login of the domain is the best example", () => {
  const [finding] = found(
    "unanchored-pattern",
    { keys: [key({ username: "root" })] },
    { domain: { logins: ["rootless"] } },
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
])("the source address %j admits %j", (sourceIp, address, suggestion, severity) => {
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
  // No address that is found in it is longer than what it spells.
  "^10\\.0\\.0\\.(25[0-5])",
])("the source address %j says what it admits", (sourceIp) => {
  expect(found("unanchored-pattern", { rules: [rule("office", { sourceIp }), denyAll] })).toEqual([]);
});

test.each([
  ["web-1", "web-10", 'Write hostname("web-1").', "warning"],
  ["^web-", "web-1", "Write ^web-.*$.", "info"],
  [
    "web",
    "web-1",
    'Write hostname("web") for that name alone, or ^.*web.*$ for all that it is found in now.',
    "warning",
  ],
])("the host name %j admits %j", (hostname, name, suggestion, severity) => {
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

test("an unanchored pattern that denies is less of a danger", () => {
  const rules = [
    rule("1", { action: "deny", username: "root" }),
    rule("2", { username: ".*", priority: 1 }),
    denyAll,
  ];
  expect(found("unanchored-pattern", { rules })).toMatchObject([{ severity: "info", object: { id: "1" } }]);
});

test("a pattern that does not compile is told with what it means there", () => {
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
    'Key "laptop": username "(" is not a regular expression in RE2 syntax, so the key admits nobody.',
    'Rule "2" (deny, priority 20): filter.hostname "[" is not a regular expression in RE2 syntax, so the rule denies every device that the rest of it matches.',
    'Rule "1" (allow, priority 10): sourceIp "*" is not a regular expression in RE2 syntax, so the rule allows nothing.',
  ]);
  expect(findings.every(({ severity }) => severity === "error")).toBe(true);
  expect(found("never-matches", policy)).toEqual([]);
});

test("without a rule that denies the rest, the rest is allowed", () => {
  const code = "no-default-deny";
  expect(found(code, { rules: [rule("office")] })).toMatchObject([
    { severity: "warning", object: { kind: "policy" } },
  ]);
  expect(found(code, { rules: [] })).toMatchObject([{ severity: "info" }]);
  expect(found(code, { rules: [{ ...denyAll, active: false }] })).toMatchObject([{ severity: "info" }]);
  for (const more of [
    { action: "allow" as const },
    { username: "^root$" },
    { sourceIp: "\\." },
    { filter: { tags: ["prod", "db"] } },
    { filter: { hostname: "-" } },
  ]) {
    expect(found(code, { rules: [{ ...denyAll, ...more }] })).toHaveLength(1);
  }
  for (const more of [
    { username: "", sourceIp: "", filter: {} },
    { username: "^.*$", sourceIp: "[.:]" },
    { username: "(" },
  ]) {
    expect(found(code, { rules: [{ ...denyAll, ...more }] })).toEqual([]);
  }
  expect(found(code, { rules: [], keys: [] })).toEqual([]);
});

test("a rule that stronger ones leave nothing to never decides", () => {
  const halves = [
    rule("web", { action: "deny", priority: 20, filter: { hostname: "^web-1$" } }),
    rule("db", { action: "deny", priority: 20, filter: { tags: ["db"] } }),
  ];
  const all = rule("all", { filter: {} });
  const [finding, ...more] = found("unreachable-rule", { rules: [all, ...halves, denyAll] });
  expect(more).toEqual([]);
  expect(finding).toMatchObject({
    severity: "warning",
    object: { kind: "rule", id: "all" },
    message:
      'Rule "all" (allow, priority 10) decides about no login of the domain: where it matches, the stronger rules "db" and "web" decide.',
    evidence: { rules: ["db", "web"] },
  });
  expect(found("unreachable-rule", { rules: [all, ...halves.slice(1), denyAll] })).toEqual([]);
});

test("of two rules that are alike, the older one never decides", () => {
  const rules = [rule("older"), rule("newer"), denyAll];
  expect(short(linted({ rules }))).toEqual(["redundant-rule newer", "unreachable-rule older"]);
});

test("a rule whose decisions others would make is redundant", () => {
  const office = rule("office", { filter: { hostname: "^web-1$" } });
  const wider = rule("wider", { priority: 5, filter: {} });
  expect(found("redundant-rule", { rules: [office, wider, denyAll] })).toMatchObject([
    {
      severity: "info",
      object: { id: "office" },
      message:
        'Rule "office" (allow, priority 10) changes no decision about a login of the domain: without it rule "wider" would decide the same.',
      evidence: { rules: ["wider"] },
    },
  ]);
  expect(found("redundant-rule", { rules: [office] })).toMatchObject([
    { object: { id: "office" }, evidence: { rules: [] } },
  ]);
  const except = rule("except", { action: "deny", priority: 7 });
  expect(found("redundant-rule", { rules: [office, except, wider, denyAll] })).toEqual([]);
});

test("a filter for no device is for nothing", () => {
  const findings = found("never-matches", {
    keys: [key(), key({ name: "old", filter: { hostname: "^gone-1$" } })],
    rules: [rule("tags", { filter: { tags: ["gone", "lost"] } }), ...clean.rules],
  });
  expect(findings).toMatchObject([
    { severity: "warning", object: { kind: "rule", id: "tags" }, field: "filter.tags" },
    { severity: "warning", object: { kind: "key", name: "old" }, field: "filter.hostname" },
  ]);
  expect(findings.map(({ message }) => message)).toEqual([
    'Rule "tags" (allow, priority 10) never matches: its filter.tags "gone" and "lost" is for no device.',
    'Key "old" admits nobody: its filter.hostname "^gone-1$" is for no device.',
  ]);
});

test("a pattern for no login or address of the domain is told as such", () => {
  const rules = [rule("case", { username: "(?i)^bob$", sourceIp: "(?i)^2001:db8::1$" }), ...clean.rules];
  expect(found("never-matches", { rules })).toMatchObject([
    {
      severity: "info",
      field: "username",
      message:
        'Rule "case" (allow, priority 10) never matches: its username "(?i)^bob$" is for no login of the domain, and its sourceIp "(?i)^2001:db8::1$" is for no address of the domain.',
    },
  ]);
  const domain = { logins: ["bob"], addresses: ["2001:db8::1"] };
  expect(found("never-matches", { rules }, { domain })).toEqual([]);
});

test("a filter that is broken denies on every device, so it is not what never matches", () => {
  const broken = rule("1", { action: "deny", username: "(?i)^bob$", filter: { hostname: "(" } });
  expect(found("never-matches", { rules: [broken, denyAll] })).toMatchObject([
    { severity: "info", field: "username" },
  ]);
});

test("a tag that no device has is told, unless all are so", () => {
  const tagged = (...tags: string[]) => ({ filter: { tags } });
  const policy = { keys: [key(tagged("prod", "gone"))], rules: [rule("1", tagged("db", "lost")), denyAll] };
  expect(found("tag-nowhere", policy)).toMatchObject([
    { object: { kind: "key" }, field: "filter.tags", evidence: { tags: ["gone"] } },
    { object: { kind: "rule", id: "1" }, evidence: { tags: ["lost"] } },
  ]);
  expect(found("tag-nowhere", { keys: [key(tagged("gone")), key(tagged("prod", "db"))] })).toEqual([]);
  const hostname = { filter: { hostname: "^web-1$", tags: ["prod", "gone"] } };
  expect(found("tag-nowhere", { keys: [key(hostname)] })).toEqual([]);
});

test("a key for everything is told", () => {
  const code = "matches-everything";
  for (const filter of [{}, { tags: [] }, { hostname: "" }, { hostname: ".*" }]) {
    for (const username of ["", ".*", "^.*$", ".+"]) {
      expect(found(code, { keys: [key({ username, filter })] })).toMatchObject([
        { severity: "warning", message: 'Key "laptop" is for every login on every device.' },
      ]);
    }
  }
  // All of the domain, and not everything.
  expect(found(code, { keys: [key({ username: "o|a", filter: { hostname: "-" } })] })).toEqual([]);
  expect(found(code, { keys: [key({ username: ".*", filter: { tags: ["prod"] } })] })).toEqual([]);
  expect(found(code, { keys: [key({ username: "(", filter: {} })] })).toEqual([]);
});

test("two rules of one priority that disagree are an accident", () => {
  const allow = rule("allow", { filter: { tags: ["prod"] } });
  const deny = rule("deny", { action: "deny", username: "^(root|ana)$", filter: { hostname: "^web" } });
  expect(found("contradiction", { rules: [allow, deny, denyAll] })).toMatchObject([
    {
      severity: "error",
      object: { kind: "rule", id: "deny" },
      message:
        'Rule "deny" (deny, priority 10) and rule "allow" (allow, priority 10) both match the login "root" from 10.0.0.1 on "web-1", and only that the former was made later makes it win.',
      evidence: { rules: ["allow"], counterexample: { login: "root", address: "10.0.0.1", device: "web-1" } },
    },
  ]);
  for (const more of [
    { priority: 9 },
    { action: "allow" as const },
    { username: "^ana$" },
    { sourceIp: "^10\\.0\\.0\\.2$" },
    { filter: { tags: ["lab"] } },
    { active: false },
  ]) {
    expect(found("contradiction", { rules: [allow, { ...deny, ...more }, denyAll] })).toEqual([]);
  }
});

test("rules below one that decides anyway do not contradict each other", () => {
  const [allow, deny] = [rule("allow"), rule("deny", { action: "deny" })];
  const above = rule("above", { priority: 20 });
  expect(found("contradiction", { rules: [allow, deny, denyAll] })).toHaveLength(1);
  expect(found("contradiction", { rules: [allow, deny, above, denyAll] })).toEqual([]);
});

const now = new Date("2026-01-01T00:00:00Z");
const inDays = (days: number) => new Date(now.getTime() + days * 86_400_000);

test("API keys that can change the policy and never end are told", () => {
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

test("what ends soon is told, what has ended is not", () => {
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
  expect(short(linted({}, { apiKeys, invitations, now, soonDays: 1 }))).toEqual(["expires-soon 1"]);
});

test("the service's ways to say never are understood", () => {
  expect(expiryOf(-1)).toBeNull();
  expect(expiryOf("0001-01-01T00:00:00Z")).toBeNull();
  expect(expiryOf(1_767_225_600)).toEqual(now);
  expect(expiryOf("2026-01-01T00:00:00Z")).toEqual(now);
  expect(() => expiryOf("never")).toThrow(RangeError);
});

test("names that hold quotes and line breaks stay within the sentence", () => {
  const [finding] = found("matches-everything", {
    keys: [key({ name: 'a".\nKey "b', username: "", filter: {} })],
  });
  expect(finding?.message).toBe('Key "a\\".\\nKey \\"b" is for every login on every device.');
});

test("findings weigh what their definition says", () => {
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
