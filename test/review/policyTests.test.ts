import { describe, expect, test } from "vitest";
import type { NamespacePolicy } from "../../sdk/policy/index.ts";
import {
  bodyOf,
  expectHolding,
  factsOf,
  IMPORT,
  runBodies,
  runBody,
  runFiles,
  smallPolicy,
} from "./support/policyFiles.ts";

const policyWith = (changes: Partial<NamespacePolicy>) => factsOf({ ...smallPolicy, ...changes });

describe("toAllow", () => {
  test("matches by key, login name, device, address and a custom condition", { tags: ["long"] }, async () => {
    await expectHolding([
      "access).toAllow({})",
      'access).toAllow({ key: "Ana*" })',
      'access).toAllow({ key: "aa:01" })',
      'access).toAllow({ key: "?na, production", login: "root", device: { name: "db-*" } })',
      'access).toAllow({ key: "contractor-eva", login: "support", device: { tag: "edge" } })',
      'access).toAllow({ key: "deploy", login: "any-name-at-all", device: { uid: "uid-web" } })',
      'access).toAllow({ device: { tag: "prod" }, from: "10.9.8.7" })',
      'access).toAllow({ device: { tag: "edge" }, from: ["198.51.100.0/24", "10.0.0.0/8"] })',
      'access).toAllow({ device: { tag: "edge" }, from: "2001:db8:1::/48" })',
      'access).toAllow({ from: "::ffff:10.1.2.3", device: { tag: "prod" } })',
      'access).toAllow({ where: ({ key, login, device, rule }) => key.name === "deploy" && login === "otheruser" && device.name === "web-01" && rule?.id === "1" })',
    ]);
  });

  test("matches nothing if one field does not match", async () => {
    const { failures, warnings } = await runBody(
      bodyOf([
        'access).not.toAllow({ key: "contractor-*", device: { tag: "prod" } })',
        'access).not.toAllow({ key: "contractor-*", login: "root" })',
        'access).not.toAllow({ key: "Ana*", device: { tag: "edge" } })',
        'access).not.toAllow({ device: { tag: "prod" }, from: "192.0.2.0/24" })',
        'access).not.toAllow({ device: { tag: "prod" }, from: "2001:db8::/32" })',
        'access).not.toAllow({ device: { tag: "prod", name: "db-*" }, key: "deploy" })',
        "access).not.toAllow({ where: () => false })",
      ]),
    );
    expect(failures).toEqual([]);
    expect(warnings).toEqual([]);
  });

  test("reports counterexamples with key and rule, and the total number of cases", async () => {
    const devices = Array.from({ length: 40 }, (_, index) => ({
      uid: `uid-${index}`,
      name: `web-${index}`,
      tags: ["prod"],
    }));
    const { failures } = await runBody(
      '\nexpect(access).not.toAllow({ key: "Ana*", login: "root" });',
      policyWith({ devices }),
    );
    expect(failures).toMatchObject([
      {
        assertion: 'expect(access).not.toAllow({ key: "Ana*", login: "root" })',
        line: 4,
        cases: 40,
        message: "40 cases are allowed",
        evaluated: { keys: 1, devices: 40, logins: ["root"] },
      },
    ]);
    expect(failures[0]?.counterexamples).toHaveLength(5);
    expect(failures[0]?.counterexamples[0]).toEqual({
      login: "root",
      address: "10.0.0.1",
      device: { uid: "uid-0", name: "web-0" },
      key: { fingerprint: "aa:01", name: "Ana, production" },
      rule: { id: "1", action: "allow", priority: 10 },
      until: null,
    });
  });

  test("reports counterexamples of different keys before more devices of the same key", async () => {
    const { failures } = await runBody("expect(access).not.toAllow({});");
    const keys = failures[0]?.counterexamples.map(({ key }) => key?.name);
    expect(new Set(keys)).toEqual(new Set(["Ana, production", "contractor-eva", "deploy"]));
  });

  test("reports the cause if a required login is denied", async () => {
    const { failures } = await runBody(
      bodyOf([
        'access).toAllow({ key: "contractor-eva", login: "root" })',
        'access).toAllow({ key: "contractor-eva", device: { tag: "web" } })',
        'access).toAllow({ key: "Ana*", from: "192.0.2.1" })',
        'access).toAllow({ key: "nobody", device: { name: "nothing" } })',
      ]),
    );
    expect(failures.map(({ counterexamples }) => counterexamples.map(({ deniedBy }) => deniedBy))).toEqual([
      ["login"],
      ["device"],
      ["rule"],
      [],
    ]);
    expect(failures[2]?.counterexamples[0]).toMatchObject({
      login: "root",
      rule: { id: "2", action: "deny" },
    });
    expect(failures[3]?.message).toBe("no matching login is allowed: the query matched no key and no device");
  });

  test("warns if it matched no key or no device, since the assertion then checks nothing", async () => {
    const { ok, warnings } = await runBody(
      bodyOf([
        'access).not.toAllow({ key: "contracter-*" })',
        'access).not.toAllow({ device: { tag: "porduction" } })',
      ]),
    );
    expect(ok).toBe(true);
    expect(warnings).toEqual([
      {
        assertion: 'expect(access).not.toAllow({ key: "contracter-*" })',
        message: "matched no key",
        line: 3,
      },
      {
        assertion: 'expect(access).not.toAllow({ device: { tag: "porduction" } })',
        message: "matched no device",
        line: 4,
      },
    ]);
  });

  test("finds logins that occur in no pattern", async () => {
    const rule = { ...smallPolicy.rules[1], id: "9", action: "deny", active: true, priority: 99 } as const;
    const facts = policyWith({
      rules: [{ ...rule, sourceIp: "", username: "^(root|ana|support)$", filter: {} }],
    });
    const { failures } = await runBody('expect(access).not.toAllow({ device: { tag: "prod" } });', facts);
    expect(failures[0]?.counterexamples).toMatchObject([
      { login: "otheruser", key: { name: "deploy" }, rule: null },
    ]);
  });
});

describe("onlyFrom", () => {
  test("passes if the rules allow the matched access only from the network", async () => {
    await expectHolding([
      'access).onlyFrom("10.0.0.0/8", { device: { tag: "prod" } })',
      'access).onlyFrom(["10.0.0.0/9", "10.128.0.0/9"], { key: "Ana*" })',
      'access).not.onlyFrom("10.0.0.0/8")',
      'access).not.onlyFrom("10.0.0.0/9", { device: { tag: "prod" } })',
    ]);
  });

  test.each([
    ["a network that is smaller than the rule's", "^10\\.", "10.0.0.0/9", "10.128.0.0"],
    ["a rule without a start anchor", "10\\.1\\.", "10.1.0.0/16", "110.1.0.0"],
    ["a rule without an end anchor", "^10\\.1", "10.1.0.0/16", "10.10.0.0"],
    ["an address without an end anchor in the rule", "^192\\.0\\.2\\.1", "192.0.2.1", "192.0.2.10"],
    ["a dot that matches a digit", "^10.", "10.0.0.0/8", "100.0.0.0"],
    ["a rule for IPv6", "^2001:db8:", "2001:db8:1::/48", "2001:db8:0:ffff:ffff:ffff:ffff:ffff"],
  ])("finds %s", async (_, sourceIp, network, address) => {
    const [allow, deny] = smallPolicy.rules;
    if (!allow || !deny) throw new Error("the policy has two rules");
    const facts = policyWith({ rules: [{ ...allow, sourceIp }, deny] });
    const { failures } = await runBody(
      `expect(access).onlyFrom("${network}", { key: "Ana*", where: (one) => one.address === "${address}" });`,
      facts,
    );
    expect(failures).toMatchObject([
      { line: 3, counterexamples: [{ address, rule: { id: "1" } }, {}, {}, {}] },
    ]);
    expect(failures[0]?.message).toBe("4 cases are allowed from other addresses");
  });

  test("warns if it matched no key", async () => {
    const { ok, warnings } = await runBody('expect(access).onlyFrom("10.0.0.0/8", { key: "nobody" });');
    expect({ ok, warnings }).toMatchObject({ ok: true, warnings: [{ message: "matched no key", line: 3 }] });
  });
});

describe("members and API keys", () => {
  test("pass or fail with their negation", async () => {
    await expectHolding([
      "members).exactlyOneOwner()",
      "apiKeys).everyKeyExpires()",
      "apiKeys).everyKeyExpires({ withinDays: 90 })",
    ]);
  });

  test("that could not be read fail only the tests that use them", async () => {
    const facts = factsOf(smallPolicy, { members: undefined, apiKeys: undefined });
    const [report] = await runFiles(
      {
        "a.policy.ts": `${IMPORT}
policyTest("members", ({ members }) => expect(members).exactlyOneOwner());
policyTest("keys", ({ apiKeys }) => expect(apiKeys).everyKeyExpires());
policyTest("access", ({ access }) => expect(access).toAllow({}));`,
      },
      facts,
    );
    expect(report?.tests).toMatchObject([
      { ok: false, failures: [{ message: "members could not be read: forbidden", line: 2 }] },
      { ok: false, failures: [{ message: "API keys could not be read: forbidden", line: 3 }] },
      { ok: true },
    ]);
  });
});

describe("custom predicates", () => {
  test("check a value, or each element of a list", async () => {
    await expectHolding([
      "policy).toSatisfy(({ devices }) => devices.length === 3)",
      "policy.keys).toSatisfy((keys) => keys.length < 10)",
      "policy.rules).toAllSatisfy((rule) => rule.active)",
      "evaluated.logins).toAllSatisfy((login) => login.length < 10)",
    ]);
  });

  test("are reported by their description, with the failing elements", async () => {
    const { failures, warnings } = await runBody(`
expect(policy.keys).toAllSatisfy(({ username }) => username.startsWith("^"), "login patterns are anchored");
expect(members.length).toSatisfy((count) => count === 1, "one member");
expect([]).toAllSatisfy(() => false);`);
    expect(failures).toMatchObject([
      { message: "the predicate is false for 1 of 3 (login patterns are anchored): deploy", line: 4 },
      { message: "the predicate is false: one member", line: 5 },
    ]);
    expect(warnings).toMatchObject([{ message: "there is no element", line: 6 }]);
  });

  test("must not return a promise, which would always count as true, and fail if they throw an error", async () => {
    const { failures } = await runBody(
      bodyOf([
        "policy).toSatisfy(async () => false)",
        'policy).toSatisfy(() => { throw new RangeError("mine"); })',
      ]),
    );
    expect(failures).toMatchObject([
      { message: expect.stringContaining("must return true or false synchronously"), line: 3 },
      { message: "RangeError: mine", line: 4 },
    ]);
  });
});

test("a wrong use of the module fails the test, and the message explains the mistake", async () => {
  const cases: [string, string][] = [
    ['expect(access).toAllow({ keys: "ana" });', 'must not have "keys"'],
    ["expect(access).toAllow({ key: process.env.NOT_SET });", "key is required and must be a string"],
    ['expect(access).toAllow({ device: { tags: ["prod"] } });', 'device must not have "tags"'],
    ['expect(access).toAllow({ device: "web-01" });', "device must be an object"],
    ['expect(access).toAllow({ key: "" });', "key must not be empty"],
    ["expect(access).toAllow();", "toAllow(): "],
    ['expect(access).toAllow({ from: "10.0.0.0/33" });', '"10.0.0.0/33" must be an address or a network'],
    ['expect(access).toAllow({ from: "10.0.0.1/8" });', "has host bits set"],
    ['expect(access).toAllow({ from: "fe80::1%eth0" });', "fe80::1%eth0 must have no zone"],
    ["expect(access).toAllow({ from: [] });", "from must contain"],
    ['expect(access).onlyFrom("the office");', '"the office" must be an address or a network'],
    [
      'expect(access).onlyFrom("10.0.0.0/8", { from: "10.0.0.0/8" });',
      "pass the networks as the first argument",
    ],
    ["expect(policy).toAllow({});", "needs the access"],
    ["expect(policy).exactlyOneOwner();", "needs the members"],
    ["expect(members).everyKeyExpires();", "needs the apiKeys"],
    ["expect(apiKeys).everyKeyExpires({ days: 3 });", "takes { withinDays: a positive number }"],
    ["expect(policy).toAllSatisfy(() => true);", "needs a list"],
    ["expect(policy).toSatisfy(true);", "takes a function"],
    ['policyTest("inner", () => {});', "gatehouse did not load this file"],
  ];
  const results = await runBodies(cases.map(([body]) => body));
  expect(results.map(({ failures }) => failures)).toMatchObject(
    cases.map(([, message]) => [{ message: expect.stringContaining(message), line: 3 }]),
  );
  expect(results.some(({ ok }) => ok)).toBe(false);
});
