import fc from "fast-check";
import { expect, test } from "vitest";
import { type FirewallRuleFacts, firewallDecides, type LoginAttempt } from "../../sdk/policy/index.ts";

const attempt: LoginAttempt = {
  deviceName: "web-1",
  deviceTags: ["prod", "edge"],
  login: "root",
  sourceIp: "10.0.0.7",
  at: new Date(),
};
const rule = (more: Partial<FirewallRuleFacts> = {}): FirewallRuleFacts => ({
  action: "deny",
  active: true,
  priority: 1,
  sourceIp: ".*",
  username: ".*",
  filter: { hostname: ".*" },
  ...more,
});

test("allows a login that no rule matches", () => {
  expect(firewallDecides([], attempt)).toEqual({ allowed: true, rule: null });
  const rules = [
    rule({ active: false }),
    rule({ username: "^admin$" }),
    rule({ sourceIp: "^192\\.168\\." }),
    rule({ filter: { hostname: "^db" } }),
    rule({ filter: { tags: ["lab"] } }),
  ];
  expect(firewallDecides(rules, attempt)).toEqual({ allowed: true, rule: null });
});

test.each([
  ["login", { username: "oo" }],
  ["address", { sourceIp: "^10\\.0\\." }],
  ["device's name", { filter: { hostname: "^web" } }],
  ["one tag", { filter: { tags: ["lab", "edge"] } }],
  ["nothing, in the form of older servers", { username: "", sourceIp: "", filter: {} }],
])("denies by a rule on the %s if all its conditions match", (_, more) => {
  const denying = rule(more);
  expect(firewallDecides([denying], attempt)).toEqual({ allowed: false, rule: denying });
});

test("applies the rule of the highest priority in any order", () => {
  const low = rule({ priority: 1, action: "deny" });
  const high = rule({ priority: 9, action: "allow" });
  for (const rules of [
    [low, high],
    [high, low],
  ]) {
    expect(firewallDecides(rules, attempt)).toEqual({ allowed: true, rule: high });
  }
});

test("applies the rule that was created last among rules of one priority", () => {
  const older = rule({ action: "allow" });
  const newer = rule({ action: "deny" });
  expect(firewallDecides([older, newer], attempt).rule).toBe(newer);
  expect(firewallDecides([newer, older], attempt).rule).toBe(older);
});

test("a rule with a pattern that does not compile can deny logins, but never allows a login", () => {
  for (const broken of [{ username: "(" }, { sourceIp: "(" }, { filter: { hostname: "(" } }]) {
    expect(firewallDecides([rule(broken)], attempt).allowed).toBe(false);
    const allowing = rule({ ...broken, action: "allow", priority: 2 });
    expect(firewallDecides([rule(), allowing], attempt).allowed).toBe(false);
  }
  expect(firewallDecides([rule({ username: "(", sourceIp: "^192" })], attempt).allowed).toBe(true);
});

/** The algorithm of the specification: sort ascending and return the last match. */
function oracle(rules: readonly FirewallRuleFacts[], login: LoginAttempt): FirewallRuleFacts | null {
  const sorted = rules.map((entry, position) => ({ entry, position }));
  sorted.sort((one, other) => one.entry.priority - other.entry.priority || one.position - other.position);
  let last: FirewallRuleFacts | null = null;
  for (const { entry } of sorted) {
    const { hostname, tags } = entry.filter;
    const forDevice = hostname
      ? new RegExp(hostname).test(login.deviceName)
      : !tags?.length || login.deviceTags.some((tag) => tags.includes(tag));
    const forLogin = new RegExp(entry.username).test(login.login);
    if (entry.active && forDevice && forLogin && new RegExp(entry.sourceIp).test(login.sourceIp))
      last = entry;
  }
  return last;
}

test("makes the same decisions as the algorithm of the specification", () => {
  const tag = fc.constantFrom("prod", "edge", "lab");
  const tags = fc.uniqueArray(tag, { maxLength: 3 });
  const hostname = fc.constantFrom("web", "^db", "1$", ".*", "^$");
  const rules = fc.array(
    fc.record({
      action: fc.constantFrom("allow" as const, "deny" as const),
      active: fc.boolean(),
      priority: fc.integer({ min: 0, max: 3 }),
      sourceIp: fc.constantFrom("", "^10\\.", "7$", ".*", "^fd"),
      username: fc.constantFrom("", "^root$", "o", ".*", "^admin"),
      filter: fc.oneof(fc.record({ hostname }), fc.record({ tags }), fc.constant({})),
    }),
    { maxLength: 8 },
  );
  const login = fc.record({
    deviceName: fc.constantFrom("web-1", "db-1", "cache"),
    deviceTags: tags,
    login: fc.constantFrom("root", "admin", "bob", "eve"),
    sourceIp: fc.constantFrom("10.0.0.7", "192.168.1.1", "fd00::1"),
    at: fc.constant(new Date()),
  });
  const decisions = new Set<string>();
  fc.assert(
    fc.property(rules, login, (list, tried) => {
      const expected = oracle(list, tried);
      const decision = firewallDecides(list, tried);
      expect(decision.rule).toBe(expected);
      expect(decision.allowed).toBe(expected?.action !== "deny");
      decisions.add(String(expected?.action));
    }),
    { numRuns: 2000 },
  );
  expect([...decisions].sort()).toEqual(["allow", "deny", "undefined"]);
});
