import pc from "picocolors";
import { describe, expect, test } from "vitest";
import { policyTestsText } from "../../provider/cli/policyTests.ts";
import type { AccessPolicy, NamespacePolicy, Principal } from "../../sdk/policy/index.ts";
import { bodyOf, expectHolding, factsOf, runBodies, runBody, smallPolicy } from "./support/policyFiles.ts";
import { accessPolicy, serviceAccount, user } from "./support/policyObjects.ts";

const ci = serviceAccount("ci");
const allow = (name: string, more: Partial<AccessPolicy>): AccessPolicy =>
  accessPolicy(name, { id: `id-${name}`, logins: ["*"], ...more });

/** Root on production needs a re-authentication; ci may deploy. Mia has no SSH key; eve is denied. */
const policies = [
  allow("root on prod", { filter: { tags: ["prod"] }, logins: ["root"], requireReauth: true }),
  allow("edge", { filter: { hostname: "^edge" }, sourceIps: ["10.0.0.0/8"] }),
  allow("deploy", { subject: { type: "user", value: "id-ci" }, logins: ["deploy"] }),
  allow("no eve", { subject: { type: "user", value: "id-eve" }, action: "deny" }),
];
const identityPolicy = (...principals: readonly Principal[]): NamespacePolicy => ({
  ...smallPolicy,
  identity: { policies, principals },
});
const [ana, mia, eve] = [
  user("ana", { role: "owner" }),
  user("mia", { keys: [] }),
  user("eve", { role: "observer" }),
];
const facts = factsOf(identityPolicy(ana, mia, eve, ci));

describe("in identity mode", () => {
  test("queries match users and service accounts by name and by id", { tags: ["long"] }, async () => {
    await expectHolding(
      [
        "access).toAllow({})",
        'access).toAllow({ user: "ana@*", login: "root", device: { tag: "prod" } })',
        'access).toAllow({ user: "id-ana", device: { tag: "edge" }, from: "10.9.8.7" })',
        'access).not.toAllow({ user: "ana@*", device: { tag: "edge" }, from: "192.0.2.0/24" })',
        'access).not.toAllow({ user: "ana@*", login: "deploy", device: { tag: "prod" } })',
        'access).not.toAllow({ user: "eve@*" })',
        'access).toAllow({ user: "ci", login: "deploy" })',
        'access).not.toAllow({ user: "ci", login: "root" })',
        'access).not.onlyFrom("10.0.0.0/8")',
        'access).onlyFrom("10.0.0.0/8", { user: "ana@*", device: { tag: "edge" } })',
      ],
      facts,
    );
  });

  test("toRequireApproval holds if all allowed logins need a re-authentication or the approval of a key", async () => {
    await expectHolding(
      [
        'access).toRequireApproval({ login: "root", device: { tag: "prod" } })',
        'access).toRequireApproval({ user: "mia@*" })',
        'access).not.toRequireApproval({ user: "ana@*" })',
        'access).not.toRequireApproval({ user: "ci" })',
        "access).not.toRequireApproval({})",
      ],
      facts,
    );
    const { failures } = await runBody("expect(access).toRequireApproval({});", facts);
    expect(failures).toMatchObject([
      {
        message: expect.stringMatching(/^\d+ of \d+ allowed cases need no approval$/),
        evaluated: { keys: 0, principals: 4, devices: 3 },
      },
    ]);
    const examples = failures[0]?.counterexamples ?? [];
    expect(examples.every(({ outcome }) => outcome === "allow")).toBe(true);
    expect(new Set(examples.map(({ principal }) => principal?.name))).toEqual(new Set([ana.name, "ci"]));
    expect(examples[0]).toEqual({
      login: "root",
      address: "10.0.0.0",
      device: { uid: "uid-edge", name: "edge-01" },
      principal: { id: "id-ana", name: ana.name, kind: "user" },
      rule: null,
      outcome: "allow",
      policy: { id: "id-edge", name: "edge", action: "allow" },
      until: null,
    });
  });

  test("toRequireApproval fails if no login is allowed; the negation passes with a warning", async () => {
    const [asserted, negated] = await runBodies(
      [
        'expect(access).toRequireApproval({ user: "eve@*" });',
        'expect(access).not.toRequireApproval({ user: "x" });',
      ],
      facts,
    );
    expect(asserted?.failures).toMatchObject([{ message: "no matching login is allowed", line: 3 }]);
    expect([negated?.ok, negated?.warnings]).toMatchObject([
      true,
      [{ message: "no matching login is allowed: the query matched no user" }],
    ]);
  });

  test("toAllow, toRequireApproval and their negations fail if it is not known whether a user has a key", async () => {
    const unread = factsOf(identityPolicy(user("ana", { keys: undefined })));
    const query = '{ device: { tag: "edge" }, from: "10.0.0.0/8" }';
    const results = await runBodies(
      [`expect(access).toRequireApproval(${query});`, `expect(access).not.toRequireApproval(${query});`],
      unread,
    );
    for (const { failures } of results)
      expect(failures).toMatchObject([{ message: expect.stringContaining("does not list"), line: 3 }]);
    const { failures } = await runBody(`expect(access).toAllow(${query});`, unread);
    expect(failures).toMatchObject([{ message: expect.stringContaining("does not list") }]);
    expect(await runBody(`expect(access).not.toAllow(${query});`, unread)).toMatchObject({ ok: false });
  });

  test("where receives the principal, the access policy and the outcome, and fails for the key", async () => {
    const where = (condition: string) => `access).toAllow({ where: (one) => ${condition} })`;
    await expectHolding(
      [
        where('one.principal.name === "ci" && one.policy.name === "deploy" && one.outcome === "allow"'),
        where('one.principal.role === "operator" && one.outcome === "approval" && one.rule === null'),
        where('one.policy?.requireReauth === true && one.outcome === "reauthentication"'),
      ],
      facts,
    );
    const { failures } = await runBody(bodyOf([where('one.key.name === "ana"')]), facts);
    expect(failures).toMatchObject([
      { message: expect.stringContaining("use `principal` instead of `key`") },
    ]);
  });

  test("examples of refused logins contain the policy that denies, or the cause", async () => {
    const { failures } = await runBody(
      'expect(access).toAllow({ login: "nobody" , device: { tag: "prod" } });',
      factsOf(identityPolicy(ana, eve, user("ivy", { role: "observer", keys: [] }))),
    );
    expect(failures[0]?.counterexamples).toMatchObject([
      { principal: { name: ana.name }, deniedBy: "default" },
      { principal: { name: eve.name }, deniedBy: "policy", policy: { name: "no eve" } },
      { principal: { id: "id-ivy" }, deniedBy: "key" },
    ]);
  });

  test("the text names users, policies and conditions", async () => {
    const result = await runBody('expect(access).not.toAllow({ user: "ana@*", login: "root" });', facts);
    const text = policyTestsText(pc.createColors(false), { ok: false, tests: [result] }, "");
    expect(text).toContain(
      "root on web-01 from <any other address> by the user ana@example.com, by the access policy root on prod",
    );
    expect(text).toContain("evaluated 1 user or service account and 3 devices");
  });
});

test("key in identity mode, and user and toRequireApproval in legacy mode, fail with or without not", async () => {
  const fails = async (assertions: readonly string[], given: typeof facts, message: string) => {
    const bodies = assertions.flatMap((text) => [`expect(access).${text};`, `expect(access).not.${text};`]);
    for (const { ok, failures } of await runBodies(bodies, given)) {
      expect(failures).toMatchObject([{ message: expect.stringContaining(message), line: 3 }]);
      expect(ok).toBe(false);
    }
  };
  await fails(
    [
      'toAllow({ key: "ana" })',
      'toRequireApproval({ key: "ana" })',
      'onlyFrom("10.0.0.0/8", { key: "ana" })',
    ],
    facts,
    "key: the namespace authorizes logins by access policies; use user",
  );
  await fails(
    [
      'toAllow({ user: "ana" })',
      'toRequireApproval({ user: "*" })',
      'onlyFrom("10.0.0.0/8", { user: "ana" })',
    ],
    factsOf(smallPolicy),
    "user: the namespace authorizes logins by public keys; use key",
  );
  for (const given of [facts, factsOf(smallPolicy)]) {
    await fails(
      ['toAllow({ users: "ana" })', 'toRequireApproval({ users: "ana" })'],
      given,
      'must not have "users"',
    );
    await fails(["toRequireApproval({ user: undefined })"], given, "user is required");
  }
  const { failures } = await runBody("expect(access).toRequireApproval({});", factsOf(smallPolicy));
  expect(failures).toMatchObject([
    { message: expect.stringMatching(/^(\d+) of \1 allowed cases need no approval$/) },
  ]);
  const where = "toAllow({ where: ({ principal }) => principal.id === 'ana' })";
  await fails([where], factsOf(smallPolicy), "use `key` instead of `principal`");
});
