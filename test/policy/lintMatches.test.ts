import { expect, test } from "vitest";
import { clean, denyAll, found, key, rule } from "./lintSubjects.ts";

test("reports a filter that matches no device", () => {
  const findings = found("never-matches", {
    keys: [key(), key({ name: "old", filter: { hostname: "^gone-1$" } })],
    rules: [rule("tags", { filter: { tags: ["gone", "lost"] } }), ...clean.rules],
  });
  expect(findings).toMatchObject([
    { severity: "warning", object: { kind: "rule", id: "tags" }, field: "filter.tags" },
    { severity: "warning", object: { kind: "key", name: "old" }, field: "filter.hostname" },
  ]);
  expect(findings.map(({ message }) => message)).toEqual([
    'Rule "tags" (allow, priority 10) never matches: its filter.tags "gone" and "lost" matches no device.',
    'Key "old" admits no login: its filter.hostname "^gone-1$" matches no device.',
  ]);
});

test("reports a pattern that matches no evaluated login or address", () => {
  const rules = [rule("case", { username: "(?i)^bob$", sourceIp: "(?i)^2001:db8::1$" }), ...clean.rules];
  expect(found("never-matches", { rules })).toMatchObject([
    {
      severity: "info",
      field: "username",
      message:
        'Rule "case" (allow, priority 10) never matches: its username "(?i)^bob$" matches no evaluated login, and its sourceIp "(?i)^2001:db8::1$" matches no evaluated address.',
    },
  ]);
  const evaluated = { logins: ["bob"], addresses: ["2001:db8::1"] };
  expect(found("never-matches", { rules }, { evaluated })).toEqual([]);
});

test("reports the username pattern, and not the invalid filter, which makes the rule deny logins on every device", () => {
  const broken = rule("1", { action: "deny", username: "(?i)^bob$", filter: { hostname: "(" } });
  expect(found("never-matches", { rules: [broken, denyAll] })).toMatchObject([
    { severity: "info", field: "username" },
  ]);
});

test("reports a tag without devices, unless no tag of the filter has devices", () => {
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

test("reports a key that admits every login on every device", () => {
  const code = "matches-everything";
  for (const filter of [{}, { tags: [] }, { hostname: "" }, { hostname: ".*" }]) {
    for (const username of ["", ".*", "^.*$", ".+"]) {
      expect(found(code, { keys: [key({ username, filter })] })).toMatchObject([
        { severity: "warning", message: 'Key "laptop" admits every login on every device.' },
      ]);
    }
  }
  // These keys admit the evaluated logins, but not every login.
  expect(found(code, { keys: [key({ username: "o|a", filter: { hostname: "-" } })] })).toEqual([]);
  expect(found(code, { keys: [key({ username: ".*", filter: { tags: ["prod"] } })] })).toEqual([]);
  expect(found(code, { keys: [key({ username: "(", filter: {} })] })).toEqual([]);
});
