import { describe, expect, test } from "vitest";
import { expect as assert } from "../../../provider/policyTests/api/index.ts";
import type { DeclaredTest } from "../../../provider/policyTests/api/running.ts";
import type { PolicySubjects } from "../../../provider/policyTests/api/types.ts";
import { type PolicyTestFacts, runPolicyTests } from "../../../provider/policyTests/runPolicyTests.ts";
import { type NamespaceFixture, namespaceOf } from "../support/namespace.ts";
import { apiKey, estate, member, rule } from "../support/planned.ts";

const evaluated = { logins: ["root"], addresses: ["10.0.0.1"] };
const FACTS: PolicyTestFacts = { state: namespaceOf(estate), evaluated };

const declared = (body: DeclaredTest["body"], more: Partial<DeclaredTest> = {}): DeclaredTest => ({
  name: "it",
  body,
  timeLimit: 5,
  stack: "",
  namespaces: undefined,
  ...more,
});
const suiteOf = (tests: readonly DeclaredTest[], error?: unknown) => ({
  files: [
    { file: "a.policy.ts", path: "/a.policy.ts", tests, untested: [], ...(error !== undefined && { error }) },
  ],
});

/** Runs one policy test. Returns the messages of its failures and warnings. */
async function resultOf(
  body: (subjects: PolicySubjects) => unknown,
  fixture: Partial<NamespaceFixture> = {},
  timeLimit = 5,
) {
  const test = declared(body as DeclaredTest["body"], { timeLimit });
  const report = await runPolicyTests(suiteOf([test]), {
    state: namespaceOf({ ...estate, ...fixture }),
    evaluated,
  });
  const [result] = report.tests;
  expect(report.ok).toBe(result?.ok);
  const texts = (notes: readonly { readonly message: string }[] = []) => notes.map(({ message }) => message);
  return { ok: report.ok, failures: texts(result?.failures), warnings: texts(result?.warnings) };
}

const failsWith = (message: string | RegExp) => ({
  ok: false,
  warnings: [],
  failures: [expect.stringMatching(message)],
});

describe("a policy test fails", () => {
  test("if an assertion does not hold, also with .not", async () => {
    const open = { ...estate.policy, rules: [] };
    const allowed = { key: "a", login: "root" };
    expect((await resultOf(({ access }) => assert(access).not.toAllow(allowed), { policy: open })).ok).toBe(
      false,
    );
    expect((await resultOf(({ access }) => assert(access).toAllow(allowed), { policy: open })).ok).toBe(true);
    const closed = { ...estate.policy, rules: [rule("1", { filter: {} })] };
    expect((await resultOf(({ access }) => assert(access).toAllow(allowed), { policy: closed })).ok).toBe(
      false,
    );
  });

  test("if it throws an error, also after an assertion that holds", async () => {
    const body = ({ members }: PolicySubjects) => {
      assert(members).exactlyOneOwner();
      throw new Error("not ready");
    };
    expect(await resultOf(body)).toEqual(failsWith("not ready"));
  });

  test("if it does not end before its time limit", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    expect(await resultOf(() => promise, {}, 0.01)).toEqual(failsWith("timed out"));
    resolve();
  });

  test.each<[string, Partial<NamespaceFixture>, (subjects: PolicySubjects) => unknown, string]>([
    ["the members", { members: undefined }, ({ members }) => members, "members could not be read"],
    [
      "the invitations",
      { unreadInvitations: "forbidden" },
      ({ members }) => members,
      "invitations could not be read",
    ],
    ["the API keys", { apiKeys: undefined }, ({ apiKeys }) => apiKeys, "API keys could not be read"],
    [
      "the workloads",
      { trustedWorkloads: undefined },
      ({ workloads }) => workloads,
      "trusted workloads could not be read",
    ],
    ["the settings", { settings: undefined }, ({ settings }) => settings, "settings .* could not be read"],
    ["the access", { accessUnknown: "the access is not known" }, ({ access }) => access, "is not known"],
    ["the policy", { accessUnknown: "the access is not known" }, ({ policy }) => policy, "is not known"],
  ])("if it needs %s and the credential could not read them", async (_, facts, body, message) => {
    expect(await resultOf(body, facts)).toEqual(failsWith(message));
  });

  test.each<[string, (subjects: PolicySubjects) => unknown, string]>([
    [
      "an undefined field",
      ({ access }) => assert(access).not.toAllow({ login: undefined } as never),
      "login is required",
    ],
    [
      "an unknown field",
      ({ access }) => assert(access).not.toAllow({ user_name: "x" } as never),
      "user_name",
    ],
    ["an empty list of networks", ({ access }) => assert(access).not.toAllow({ from: [] }), "at least one"],
    [
      "an invalid network",
      ({ access }) => assert(access).not.toAllow({ from: "10.0.0.0/40" }),
      "10.0.0.0/40",
    ],
    ["no networks", ({ access }) => assert(access).onlyFrom([]), "at least one network"],
    [
      "a condition that returns a promise",
      ({ access }) => assert(access).toAllow({ where: (async () => true) as never }),
      "must return true or false synchronously",
    ],
    [
      "a predicate that returns a promise",
      ({ members }) => assert(members).toAllSatisfy((async () => true) as never),
      "must return true or false synchronously",
    ],
    [
      "an unknown duration",
      ({ access }) => assert(access).toExpireWithin("1 week" as never),
      "takes a duration",
    ],
    [
      "a user in a namespace whose keys decide",
      ({ access }) => assert(access).not.toAllow({ user: "ana@example.com" }),
      "the namespace authorizes logins by public keys",
    ],
  ])("for %s, with .not too", async (_, body, message) => {
    const open = { ...estate.policy, rules: [] };
    expect(await resultOf(body, { policy: open })).toEqual(failsWith(message));
  });

  test("if its file cannot be loaded", async () => {
    const report = await runPolicyTests(suiteOf([], new Error("unexpected token")), FACTS);
    expect([report.ok, report.tests.map(({ failures }) => failures[0]?.message)]).toEqual([
      false,
      ["unexpected token"],
    ]);
  });
});

describe("a policy test warns", () => {
  test("if it makes no assertion", async () => {
    expect((await resultOf(() => {})).warnings).toEqual(["the test makes no assertion with expect()"]);
  });

  test("if its query matches no key or device", async () => {
    const body = ({ access }: PolicySubjects) =>
      assert(access).not.toAllow({ key: "nobody", device: { tag: "none" } });
    expect((await resultOf(body)).warnings).toEqual(["matched no key and no device"]);
  });
});

describe("the members and API keys", () => {
  const [now, day] = ["2026-11-01T00:00:00Z", 86_400];
  const key = (days: number, name = "ci") => ({
    ...apiKey(name, "observer"),
    createdAt: now,
    expiresIn: days < 0 ? -1 : Date.parse(now) / 1000 + days * day,
  });
  const expiryOf = (keys: ReturnType<typeof key>[], withinDays?: number) =>
    resultOf(
      ({ apiKeys }) => assert(apiKeys).everyKeyExpires(withinDays === undefined ? undefined : { withinDays }),
      { apiKeys: keys },
    );

  test("everyKeyExpires requires an end of every key, within the days", async () => {
    const passed = { ok: true, failures: [], warnings: [] };
    expect(await expiryOf([key(30)])).toEqual(passed);
    expect(await expiryOf([key(30)], 30)).toEqual(passed);
    expect(await expiryOf([key(30), key(-1, "old")])).toEqual(
      failsWith(/^1 API key without an expiry date: old$/),
    );
    expect(await expiryOf([key(31), key(-1, "old")], 30)).toEqual(
      failsWith(/^1 API key without an expiry date: old; 1 API key valid for more than 30 days: ci$/),
    );
    expect(await expiryOf([{ ...key(30), createdAt: "unknown" }], 30)).toEqual(
      failsWith("more than 30 days"),
    );
    expect(await expiryOf([])).toEqual({ ...passed, warnings: ["there is no API key"] });
  });

  test.each<[string, string[], string]>([
    ["no owner", [], "there is no owner"],
    ["two owners", ["ana", "eve"], "2 owners: ana@example.com, eve@example.com"],
  ])("exactlyOneOwner fails with %s", async (_, owners, message) => {
    const members = owners.map((name) => member(name, "owner"));
    expect(await resultOf(({ members: all }) => assert(all).exactlyOneOwner(), { members })).toEqual(
      failsWith(message),
    );
  });
});
