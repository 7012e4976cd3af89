import pc from "picocolors";
import { describe, expect, test } from "vitest";
import { accessAnswer } from "../../provider/access/answer.ts";
import { type AccessFlags, accessInquiry } from "../../provider/access/inquiry.ts";
import type { Step } from "../../provider/engine/index.ts";
import { accessMapData } from "../../provider/map/accessMapData.ts";
import { accessSentence } from "../../provider/privileges/accessLines.ts";
import { memberSentence } from "../../provider/resources/member/index.ts";
import { reviewMarkdown } from "../../provider/review/report/markdown.ts";
import type { NamespaceReview } from "../../provider/review/report/review.ts";
import { reviewText } from "../../provider/review/report/text.ts";
import { PLAIN } from "../../provider/style.ts";
import type { AccessRule } from "../../sdk/policy/index.ts";
import { DAY } from "../../sdk/times.ts";
import { DSA_KEY } from "../support/dsaKey.ts";
import { accessesOf, meta } from "./support/example.ts";
import { identityFixture, type NamespaceFixture, namespaceAfter, namespaceOf } from "./support/namespace.ts";
import { ALLOWED, namespaceReview, wholeReview } from "./support/namespaceReview.ts";
import {
  fingerprintOf,
  keyA,
  keyB,
  keyInputs,
  keyState,
  lineC,
  member,
  estate as plannedNamespace,
  rule,
  ruleInputs,
  ruleState,
} from "./support/planned.ts";
import { bodyOf, factsOf, runBody, smallPolicy } from "./support/policyFiles.ts";
import { accessDevice, accessKey, accessRule } from "./support/policyObjects.ts";
import { byPlugin, creation, managing, planOf, step } from "./support/steps.ts";

/** Returns the time after a number of days, with full minutes, so that texts show no seconds. */
const inDays = (days: number) => {
  const minutes = Math.floor((Date.now() + days * DAY) / 60_000);
  return new Date(minutes * 60_000).toISOString();
};
const displayed = (time: string) => `${time.slice(0, 16).replace("T", " ")} UTC`;

const [SOON, LATER, PAST] = [inDays(3), inDays(40), inDays(-3)];

/** A namespace on a server that does not end access by itself. */
const estate: NamespaceFixture = { ...plannedNamespace, apiKeys: [] };
/** The member who owns the key `b`. */
const bob = { id: "user-bob", email: "bob@example.com", isAccepted: true };
/** A namespace on a server that ends access by itself: the key `a` ends soon, and Bob owns the key `b`. */
const enforcing: NamespaceFixture = {
  ...estate,
  enforcesExpiry: true,
  policy: {
    ...estate.policy,
    keys: [
      { ...keyA, expiresAt: SOON },
      { ...keyB, owner: bob.id },
    ],
    rules: [],
    members: [{ id: "user-owner", email: "owner@example.com", isAccepted: true }, bob],
  },
};

const plannedIn = (namespace: NamespaceFixture, ...steps: Step[]) => {
  const options = { creatorRole: "administrator", now: new Date() } as const;
  const planned = namespaceAfter(namespace, planOf(...steps), options);
  expect(namespaceAfter(namespace, planOf(...steps.map(byPlugin)), options).policy).toEqual(planned.policy);
  return planned;
};

const bobState = managing("Member", bob.id);
const bobInputs = { email: bob.email, role: "observer" };
const memberStep = (inputs: Record<string, string>) =>
  step("update", "Member", "bob", { ...bobState, after: { ...bobInputs, ...inputs } });

describe("a planned namespace", () => {
  test("has the ends and owners of keys, rules and members in one form", () => {
    const offset = `${SOON.slice(0, 19)}+02:00`;
    const { policy } = plannedIn(
      enforcing,
      creation("PublicKey", "c", { ...keyInputs, data: lineC, expiresAt: offset, owner: "BOB@example.com" }),
      creation("FirewallRule", "x", { ...ruleInputs, expiresAt: LATER }),
      memberStep({ expiresAt: LATER }),
    );
    const end = new Date(Date.parse(SOON) - 2 * 3_600_000).toISOString();
    expect(policy.keys.at(-1)).toMatchObject({ expiresAt: end, owner: bob.id });
    expect(policy.rules).toMatchObject([{ expiresAt: LATER }]);
    expect(policy.members).toContainEqual({ ...bob, expiresAt: LATER });
  });

  test("has no access by a new DSA key, except on a server that admits such keys", () => {
    const create = creation("PublicKey", "c", { ...keyInputs, data: DSA_KEY });
    expect(plannedIn(enforcing, create).policy.keys.at(-1)).toMatchObject({ refusedType: "ssh-dss" });
    expect(plannedIn(estate, create).policy.keys.at(-1)?.refusedType).toBeUndefined();
  });

  test("finds the owner among members that the same plan adds", () => {
    const eva = "eva@example.com";
    const { policy } = plannedIn(
      enforcing,
      creation("PublicKey", "c", { ...keyInputs, data: lineC, owner: eva }),
      creation("Member", "eva", { email: eva, role: "operator" }),
    );
    expect(policy.keys.at(-1)?.owner).toBe(eva);
    expect(policy.members).toContainEqual({ id: eva, email: eva, isAccepted: false });
  });

  test("keeps the owner of a user who has changed the e-mail address", () => {
    const owner = "former@example.com";
    const state = {
      id: keyState.id,
      before: { inputs: { owner }, outputs: { ...keyState.before.outputs, ownerId: bob.id } },
    };
    const { policy } = plannedIn(
      enforcing,
      step("update", "PublicKey", "a", { ...state, after: { ...keyInputs, owner } }),
    );
    expect(policy.keys[0]?.owner).toBe(bob.id);
  });

  test("removes an end that is no longer declared", () => {
    const update = step("update", "PublicKey", "a", { ...keyState, after: { ...keyInputs, expiresAt: "" } });
    expect(plannedIn(enforcing, update).policy.keys[0]).not.toHaveProperty("expiresAt");
  });

  test("adopts a rule only if the rule has the declared end", () => {
    const adopting = { ...ruleInputs, adopt: true, expiresAt: LATER };
    const rulesIn = (live: AccessRule) => {
      const namespace = { ...enforcing, policy: { ...enforcing.policy, rules: [live] } };
      const { rules } = plannedIn(namespace, creation("FirewallRule", "x", adopting)).policy;
      return rules.map(({ id, expiresAt }) => [id, expiresAt]);
    };
    const live = rule("7", ruleInputs as Partial<AccessRule>);
    expect(rulesIn(live)).toEqual([
      ["7", undefined],
      ["x (new)", LATER],
    ]);
    expect(rulesIn({ ...live, expiresAt: LATER })).toEqual([["7", LATER]]);
  });

  test("is not evaluated for an owner if the members could not be read", () => {
    const after = { ...keyInputs, data: lineC, owner: bob.email };
    const namespace = { ...enforcing, members: undefined };
    const planned = plannedIn(namespace, creation("PublicKey", "c", after));
    expect(planned.policy.keys).toEqual(enforcing.policy.keys);
    expect(planned.notEvaluated).toEqual([
      'PublicKey "c": its owner cannot be found, because the members could not be read; access is evaluated without this resource',
    ]);
  });

  test("is not evaluated for an end that is unknown before the apply", () => {
    const after = { ...keyInputs, expiresAt: "[unknown]" };
    const planned = plannedIn(enforcing, step("update", "PublicKey", "a", { ...keyState, after }));
    expect(planned.policy).toEqual(enforcing.policy);
    expect(planned.notEvaluated.join()).toContain("its expiresAt is secret or unknown before the apply");
  });

  test("has no ends on a server that does not end access, and loses expired objects by an update", () => {
    const created = plannedIn(
      estate,
      creation("PublicKey", "c", { ...keyInputs, data: lineC, expiresAt: SOON, owner: bob.email }),
      creation("FirewallRule", "x", { ...ruleInputs, expiresAt: SOON }),
    );
    expect(created.policy).not.toHaveProperty("members");
    expect(JSON.stringify(created.policy)).not.toMatch(/expiresAt|owner/);
    const expired = plannedIn(
      estate,
      step("update", "PublicKey", "a", { ...keyState, after: { ...keyInputs, expiresAt: PAST } }),
      step("update", "FirewallRule", "x", { ...ruleState, after: { ...ruleInputs, expiresAt: PAST } }),
      memberStep({ expiresAt: PAST }),
    );
    expect(expired.policy.keys).toEqual([keyB]);
    expect(expired.policy.rules.map(({ id }) => id)).toEqual(["2"]);
    expect(expired.members?.map(({ email }) => email)).toEqual(["owner@example.com"]);
  });

  test("evaluates the update of an expired object that no longer exists", () => {
    const state = managing("PublicKey", fingerprintOf(lineC));
    const after = { ...keyInputs, data: lineC, expiresAt: PAST };
    const planned = plannedIn(enforcing, step("update", "PublicKey", "c", { ...state, after }));
    expect(planned.policy).toEqual(enforcing.policy);
    expect(planned.notEvaluated).toEqual([]);
  });
});

const reviewOf = (namespace: NamespaceFixture, ...steps: Step[]) =>
  namespaceReview(namespace, planOf(...steps), { logins: ["root"] });

const sentences = ({ access }: NamespaceReview) =>
  (access ?? []).map((line) => accessSentence(line, PLAIN)).join("\n");
const NOTHING = { ...ALLOWED, allowLockout: true };
const keyWith = (more: Record<string, string>) =>
  step("update", "PublicKey", "a", {
    ...keyState,
    after: { ...keyInputs, username: keyA.username, filter: { tags: ["prod"] }, ...more },
  });

describe("a review", () => {
  test("shows the end of gained access, also as null in JSON", async () => {
    const create = (expiresAt: string) =>
      reviewOf(
        enforcing,
        creation("PublicKey", "c", { ...keyInputs, name: "c", data: lineC, username: "^root$", expiresAt }),
      );
    const ending = await create(LATER);
    expect(sentences(ending)).toBe(
      `key c gains login root on lab-03, web-01, web-02 until ${displayed(LATER)}`,
    );
    expect(ending.access?.[0]).toMatchObject({ change: "gained", until: LATER, untilBefore: null });
    expect((await create("")).access?.[0]).toMatchObject({ change: "gained", until: null });
  });

  test("counts prolonged access as gained, and shows both ends", async () => {
    const review = await reviewOf(enforcing, keyWith({ expiresAt: LATER }));
    const sentence = `key a: login root on web-01, web-02 until ${displayed(LATER)} (before: until ${displayed(SOON)})`;
    expect(sentences(review)).toBe(sentence);
    expect(reviewText(pc.createColors(false), wholeReview(review), NOTHING)).toContain(`~ ${sentence}`);
    expect(reviewMarkdown(wholeReview(review), NOTHING)).toMatch(/^## OK: .*1 key gains access/m);
    const endless = await reviewOf(enforcing, keyWith({ expiresAt: "" }));
    expect(sentences(endless)).toContain(`without an end (before: until ${displayed(SOON)})`);
    expect(reviewMarkdown(wholeReview(endless), NOTHING)).toContain("1 key gains access");
  });

  test("does not count shortened access as gained", async () => {
    const review = await reviewOf(enforcing, keyWith({ expiresAt: inDays(1) }));
    expect(review.access?.[0]).toMatchObject({ change: "altered", untilBefore: SOON });
    expect(reviewMarkdown(wholeReview(review), NOTHING)).not.toContain("gains access");
  });

  test("blocks on a new unanchored pattern of a key whose access is only prolonged", async () => {
    const [first, second] = enforcing.policy.keys;
    if (!first || !second) throw new Error("no keys");
    const live = {
      ...enforcing,
      policy: { ...enforcing.policy, keys: [{ ...first, username: "^(root)$" }, second] },
    };
    const review = await reviewOf(live, keyWith({ expiresAt: LATER, username: "root$" }));
    const blocked = (some: NamespaceReview) => /## Blocked/.test(reviewMarkdown(wholeReview(some), NOTHING));
    expect(review.lint).toContainEqual(expect.objectContaining({ rule: "unanchored-pattern", isNew: true }));
    expect(blocked(review)).toBe(true);
  });

  test("lists declared objects whose access ends soon, also on servers that do not end access", async () => {
    const steps = [
      step("same", "PublicKey", "temp", { ...keyState, after: { ...keyInputs, expiresAt: SOON } }),
      creation("FirewallRule", "window", { ...ruleInputs, expiresAt: inDays(1) }),
      step("same", "Member", "bob", { ...bobState, after: { ...bobInputs, expiresAt: LATER } }),
      creation("ServiceAccount", "ci", { name: "ci", data: lineC, validDays: 5 }),
      memberStep({ expiresAt: PAST }),
    ];
    for (const namespace of [estate, enforcing]) {
      const review = await reviewOf(namespace, ...steps);
      expect(review.ending.objects).toMatchObject([
        { kind: "FirewallRule", resource: "window" },
        { kind: "PublicKey", resource: "temp", until: SOON },
        { kind: "ServiceAccount", resource: "ci" },
      ]);
      expect(reviewMarkdown(wholeReview(review), NOTHING)).toContain(
        `### Access that ends within 14 days\n\n- FirewallRule \`window\`: until `,
      );
    }
  });

  test("lists the end of a service account whose key is unknown before the apply", async () => {
    const after = { name: "ci", data: "[unknown]", validDays: 5 };
    const { ending, notEvaluated } = await reviewOf(enforcing, creation("ServiceAccount", "ci", after));
    expect(ending.objects).toMatchObject([{ kind: "ServiceAccount", resource: "ci" }]);
    expect(notEvaluated.join()).toContain("its data is secret or unknown before the apply");
  });

  test("shows the loss of the keys of a removed member, and the keys that the service refuses", async () => {
    const review = await reviewOf(enforcing, step("delete", "Member", "bob", bobState));
    expect(sentences(review)).toMatch(/^key b loses every login on web-01, web-02$/);
    expect(review.members.map((change) => memberSentence(change, PLAIN))).toEqual([
      "bob@example.com is removed (was observer). The service refuses 1 key of the member (b) and ends the sessions",
    ]);
  });

  test("shows a membership that ends, or that is prolonged", async () => {
    const ended = await reviewOf(enforcing, memberStep({ expiresAt: PAST }));
    expect(ended.members).toMatchObject([
      { change: "end", until: PAST, untilBefore: null, refusedKeys: ["b"] },
    ]);
    expect(sentences(ended)).toMatch(/^key b loses/);
    const limited = await reviewOf(enforcing, memberStep({ expiresAt: LATER }));
    expect(limited.members.map((change) => memberSentence(change, PLAIN))).toEqual([
      `bob@example.com (observer), membership until ${displayed(LATER)} (before: without an end)`,
    ]);
    expect(sentences(limited)).toMatch(/^key b: every login on .* \(before: without an end\)$/);
  });

  test("reports the end of the last administrator's membership as a lockout", async () => {
    const members = enforcing.members?.map((one) =>
      one.id === bob.id ? { ...one, role: "administrator" as const } : one,
    );
    const inputs = { role: "administrator", expiresAt: PAST };
    const { lockouts } = await reviewOf({ ...enforcing, members }, memberStep(inputs));
    expect(lockouts).toMatchObject([{ code: "last-administrator" }]);
    const later = await reviewOf({ ...enforcing, members }, memberStep({ ...inputs, expiresAt: LATER }));
    expect(later.lockouts).toEqual([]);
  });

  test("counts the keys of invited users as keys that give access", async () => {
    const eva = "eva@example.com";
    const review = await reviewOf(
      enforcing,
      creation("Member", "eva", { email: eva, role: "operator" }),
      creation("PublicKey", "c", { ...keyInputs, name: "c", data: lineC, username: "^root$", owner: eva }),
    );
    expect(sentences(review)).toMatch(/^key c gains login root/);
  });
});

/** Returns the output of `gatehouse access` for a namespace. */
function answer(namespace: NamespaceFixture, flags: AccessFlags, format: "text" | "json" | "csv" = "text") {
  const { output, refused } = accessAnswer(namespaceOf(namespace), accessInquiry(flags, format));
  return { text: [...output].join(""), refused };
}

describe("gatehouse access", () => {
  test("shows the end of access in all formats", () => {
    const lines = answer(enforcing, { login: ["root"] }).text.split("\n");
    expect(lines.find((line) => line.startsWith("KEY "))).toMatch(/BY RULE +UNTIL$/);
    expect(lines.find((line) => line.startsWith("a ("))).toMatch(new RegExp(`${displayed(SOON)}$`));
    expect(lines.find((line) => line.startsWith("b ("))).toMatch(/no end$/);
    const { grants } = JSON.parse(answer(enforcing, {}, "json").text);
    expect(new Set(grants.map(({ until }: { until: string | null }) => until))).toEqual(
      new Set([SOON, null]),
    );
    const [head = "", first = ""] = answer(enforcing, { key: ["a"], login: ["root"] }, "csv").text.split(
      "\r\n",
    );
    expect(head).toMatch(/,until$/);
    expect(first).toMatch(new RegExp(`,${SOON}$`));
    expect(answer(estate, {}).text).not.toContain("UNTIL");
  });

  test("--at evaluates the access at another time", () => {
    const at = LATER.replace(/:00\.000Z$/, "Z");
    expect(answer(enforcing, { login: ["root"], at }).text).toContain(`Access at ${displayed(LATER)}`);
    expect(answer(enforcing, { login: ["root"], at }).text).toMatch(
      /Keys without access to these devices: a \(/,
    );
    const { at: time, grants } = JSON.parse(answer(enforcing, { at }, "json").text);
    expect(time).toBe(LATER);
    expect(grants.map(({ key }: { key: string }) => key)).toContain(keyB.fingerprint);
    expect(grants.map(({ key }: { key: string }) => key)).not.toContain(keyA.fingerprint);
    for (const accepted of ["2026-12-01T18:00+01:00", "2026-12-01T18:00:00Z", "2026-12-01T18:00:00.5-03:30"])
      expect(accessInquiry({ at: accepted }, "text").at?.getTime()).toBe(Date.parse(accepted));
  });

  test.each(["2026-12-01", "2026-12-01T18:00", "tomorrow", "2026-13-01T18:00Z", "1764612000", ""])(
    "--at rejects %j",
    (at) => {
      expect(() => accessInquiry({ at }, "text")).toThrow("--at must be a time with an offset");
    },
  );

  test("--person selects the keys of a member", () => {
    const { text } = answer(enforcing, { person: "BOB@example.com" });
    expect(text).toContain("1 of 2 keys");
    expect(text).toContain("\nb (");
    expect(() => answer(enforcing, { person: "eva@example.com" })).toThrow(
      "--person eva@example.com is not a member",
    );
    expect(() => answer(enforcing, { person: "eva@example.com" })).toThrow(
      expect.objectContaining({ remedy: "the members are bob@example.com, owner@example.com" }),
    );
    expect(() => answer(estate, { person: bob.email })).toThrow("does not store the owners of public keys");
    expect(() => answer({ ...enforcing, members: undefined }, { person: bob.email })).toThrow(
      "The members could not be read",
    );
  });

  test("--person selects a member in a namespace in identity mode", () => {
    expect(answer({ ...estate, identity: identityFixture() }, { person: bob.email }).text).toContain(
      "1 of 2 principals",
    );
  });

  const explained = (flags: AccessFlags, namespace = enforcing) =>
    answer(namespace, { explain: true, device: ["web-01"], login: ["root"], ...flags });
  const withMembers = (...members: NonNullable<NamespaceFixture["members"]>): NamespaceFixture => ({
    ...enforcing,
    members,
  });

  test("--explain reports expired keys and rules", () => {
    const key = explained({ key: ["a"], at: LATER });
    expect(key.refused).toBe(true);
    expect(key.text).toContain(`Because the key a expired at ${displayed(SOON)}.`);
    expect(key.text).toContain(`Time of the login: ${displayed(LATER)}`);
    expect(explained({ key: ["a"] }).text).toContain(`${keyA.fingerprint}, until ${displayed(SOON)}`);
    const rules: AccessRule[] = [rule("1", { expiresAt: SOON })];
    const denied = explained({ key: ["b"] }, { ...enforcing, policy: { ...enforcing.policy, rules } });
    expect(denied.text).toContain(`decides. Conditions: `);
    const open = explained(
      { key: ["b"], at: LATER },
      { ...enforcing, policy: { ...enforcing.policy, rules } },
    );
    expect(open.refused).toBe(false);
    expect(open.text).toContain("does not match: expired (everything else matches)");
    expect(open.text).toContain(`until ${displayed(SOON)}`);
  });

  test("--explain reports a key of a type that the service refuses", () => {
    const keys = [{ ...keyA, refusedType: "ssh-dss" }];
    const { refused, text } = explained(
      { key: ["a"] },
      { ...enforcing, policy: { ...enforcing.policy, keys } },
    );
    expect(refused).toBe(true);
    expect(text).toMatch(/^DENIED: key a as root /);
    expect(text).toContain("Because the service refuses keys of the type ssh-dss, such as a.");
  });

  test.each([
    ["the user user-bob, who is not a member", []],
    [
      "bob@example.com, who has not accepted the invitation",
      [{ ...member("bob", "observer"), status: "pending" as const }],
    ],
    [
      `bob@example.com, whose membership ended at ${displayed(PAST)}`,
      [{ ...member("bob", "observer"), accessExpiresAt: PAST }],
    ],
  ])("--explain reports a key that belongs to %s", (text, members) => {
    const { refused, text: words } = explained({ key: ["b"] }, withMembers(...members));
    expect(refused).toBe(true);
    expect(words).toContain(`Because the key b belongs to ${text}.`);
  });
});

describe("policy tests", () => {
  const [ana, contractor, deploy] = smallPolicy.keys;
  if (!ana || !contractor || !deploy) throw new Error("the policy has fewer keys");
  const facts = factsOf({
    ...smallPolicy,
    keys: [ana, { ...contractor, expiresAt: SOON }, { ...deploy, owner: bob.id }],
    members: [{ ...bob, isAccepted: false }],
  });
  const run = (...assertions: string[]) => runBody(bodyOf(assertions), facts);

  test("query the access at another time", async () => {
    const { failures, warnings } = await run(
      'access).toAllow({ key: "contractor-*" })',
      'access).toAllow({ key: "deploy", where: ({ until }) => until === null })',
      `access).toAllow({ key: "contractor-*", where: ({ until }) => until === "${SOON}" })`,
      `access.at("${LATER}")).not.toAllow({ key: "contractor-*" })`,
      `access.at(new Date("${LATER}"))).not.toAllow({ key: "contractor-*" })`,
      `access.at("${LATER}").at("${PAST}")).toAllow({ key: "contractor-*" })`,
    );
    expect(failures).toEqual([]);
    expect(warnings).toEqual([]);
  });

  test.each(['"2026-12-01"', '"2026-12-01T18:00"', "new Date(Number.NaN)", "5"])(
    "access.at(%s) fails the test",
    async (time) => {
      const { failures } = await run(`access.at(${time})).not.toAllow({ key: "none" })`);
      expect(failures.map(({ message }) => message).join()).toContain(
        "access.at(): must be a time with an offset",
      );
    },
  );

  test("report the end of refused keys", async () => {
    const { failures } = await run(`access.at("${LATER}")).toAllow({ key: "contractor-*" })`);
    expect(failures[0]?.counterexamples).toMatchObject([{ deniedBy: "expired" }]);
  });

  test("toExpireWithin passes if all access ends within the duration", async () => {
    const { failures, warnings } = await run(
      'access).toExpireWithin("4d", { key: "contractor-*" })',
      'access).toExpireWithin("96h", { key: "contractor-*" })',
      'access).toExpireWithin("5760m", { key: "contractor-*" })',
      'access).not.toExpireWithin("2d", { key: "contractor-*" })',
      'access).not.toExpireWithin("14d")',
      `access.at("${inDays(2)}")).toExpireWithin("25h", { key: "contractor-*" })`,
    );
    expect(failures).toEqual([]);
    expect(warnings).toEqual([]);
  });

  test("toExpireWithin fails with examples of access that lasts longer or does not end", async () => {
    const longer = await run('access).toExpireWithin("24h", { key: "contractor-*" })');
    expect(longer.failures).toMatchObject([{ counterexamples: [{ until: SOON }] }]);
    expect(longer.failures[0]?.message).toMatch(/^1 of 1 allowed case does not expire within 24h$/);
    const endless = await run('access).toExpireWithin("24h", { key: "Ana*", login: "root" })');
    expect(endless.failures[0]?.counterexamples[0]).toMatchObject({ until: null });
  });

  test("toExpireWithin warns if no login is allowed, and rejects other durations", async () => {
    const { failures, warnings } = await run('access).toExpireWithin("24h", { key: "missing" })');
    expect(failures).toEqual([]);
    expect(warnings.map(({ message }) => message)).toEqual([
      "no matching login is allowed: the query matched no key",
    ]);
    const durations = ['"24"', '"0h"', '"1w"', '"1h30m"', "24", ""];
    const invalid = await run(...durations.map((duration) => `access).not.toExpireWithin(${duration})`));
    expect(invalid.failures.map(({ message }) => message)).toEqual(
      durations.map(() =>
        expect.stringContaining('takes a duration in minutes, hours or days, such as "30m", "24h" or "14d"'),
      ),
    );
  });
});

describe("the access map", () => {
  const devices = [accessDevice("web-1", "prod")];
  const key = accessKey("temp", { username: "^root$" });
  const denying = accessRule("1", { expiresAt: SOON });
  const policy = (expiresAt: string | undefined, rules: AccessRule[] = []) => ({
    devices,
    keys: [{ ...key, expiresAt }],
    rules,
  });
  const mapOf = (before: ReturnType<typeof policy>, after: ReturnType<typeof policy>) => {
    const accesses = accessesOf(before, after);
    return accessMapData(accesses.before, accesses.after, meta);
  };

  test("has the end of each access, and the times at which access changes", () => {
    const { edges, times } = mapOf(policy(LATER), policy(LATER));
    expect(times.slice(1)).toEqual([displayed(LATER)]);
    expect(edges).toMatchObject([{ change: "kept", until: displayed(LATER), times: [0] }]);
    expect(mapOf(policy(undefined), policy(undefined)).times).toHaveLength(1);
  });

  test("shows access that begins when a rule that denies expires", () => {
    const { edges, times } = mapOf(policy(LATER, [denying]), policy(LATER, [denying]));
    expect(times.slice(1)).toEqual([displayed(SOON), displayed(LATER)]);
    expect(edges).toMatchObject([{ change: "kept", times: [1] }]);
  });

  test("states the cause of lost access, and the end before the change", () => {
    const [lost] = mapOf(policy(LATER), policy(PAST)).edges;
    expect(lost?.change).toBe("lost");
    const { edges, texts } = mapOf(policy(SOON), policy(LATER));
    const altered = edges.find((edge) => edge.times?.includes(0));
    expect(texts[altered?.cause ?? -1]?.text).toBe(`before the change: until ${displayed(SOON)}`);
    expect(edges.find((edge) => edge.times?.includes(1))?.change).toBe("gained");
  });

  test("limits the number of times, and reports the limit", () => {
    const keys = Array.from({ length: 25 }, (_, index) => ({
      ...key,
      fingerprint: `f${index}`,
      expiresAt: inDays(index + 1),
    }));
    const some = { devices, keys, rules: [] };
    const { before, after } = accessesOf(some, some);
    const { times, notes } = accessMapData(before, after, meta);
    expect(times).toHaveLength(20);
    expect(notes).toContain(`Expiry times after ${times.at(-1)} are not evaluated.`);
  });
});
