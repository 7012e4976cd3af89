import { expect, test } from "vitest";
import { denyAll, found, linted, rule, short } from "./lintSubjects.ts";

test("reports a policy without a last rule that denies all other logins", () => {
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

test("reports a rule as unreachable if stronger rules decide on all logins that it matches", () => {
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
      'Rule "all" (allow, priority 10) decides no evaluated login: for every login that it matches, the stronger rules "db" and "web" decide.',
    evidence: { rules: ["db", "web"] },
  });
  expect(found("unreachable-rule", { rules: [all, ...halves.slice(1), denyAll] })).toEqual([]);
});

test("reports the older of two equal rules as unreachable", () => {
  const rules = [rule("older"), rule("newer"), denyAll];
  expect(short(linted({ rules }))).toEqual(["redundant-rule newer", "unreachable-rule older"]);
});

test("reports a rule as redundant if every decision is the same without the rule", () => {
  const office = rule("office", { filter: { hostname: "^web-1$" } });
  const wider = rule("wider", { priority: 5, filter: {} });
  expect(found("redundant-rule", { rules: [office, wider, denyAll] })).toMatchObject([
    {
      severity: "info",
      object: { id: "office" },
      message:
        'Rule "office" (allow, priority 10) changes no decision about an evaluated login: without it, rule "wider" would make the same decision.',
      evidence: { rules: ["wider"] },
    },
  ]);
  expect(found("redundant-rule", { rules: [office] })).toMatchObject([
    { object: { id: "office" }, evidence: { rules: [] } },
  ]);
  const except = rule("except", { action: "deny", priority: 7 });
  expect(found("redundant-rule", { rules: [office, except, wider, denyAll] })).toEqual([]);
});

test("reports two contradicting rules of one priority", () => {
  const allow = rule("allow", { filter: { tags: ["prod"] } });
  const deny = rule("deny", { action: "deny", username: "^(root|ana)$", filter: { hostname: "^web" } });
  expect(found("contradiction", { rules: [allow, deny, denyAll] })).toMatchObject([
    {
      severity: "error",
      object: { kind: "rule", id: "deny" },
      message:
        'Rule "deny" (deny, priority 10) and rule "allow" (allow, priority 10) both match the login "root" from 10.0.0.1 on "web-1". The first rule decides only because it was created later.',
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

test("reports no contradiction between rules if a stronger rule decides on all their logins", () => {
  const [allow, deny] = [rule("allow"), rule("deny", { action: "deny" })];
  const above = rule("above", { priority: 20 });
  expect(found("contradiction", { rules: [allow, deny, denyAll] })).toHaveLength(1);
  expect(found("contradiction", { rules: [allow, deny, above, denyAll] })).toEqual([]);
});
