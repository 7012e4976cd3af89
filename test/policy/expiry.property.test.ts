import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Access,
  type AccessKey,
  type AccessMember,
  accessChanges,
  evaluateAccess,
  explain,
  grantsOf,
  type NamespacePolicy,
  subjectFacts,
} from "../../sdk/policy/index.ts";
import * as arbitrary from "./arbitraries.ts";
import { decide } from "./oracle.ts";

/** The times at which objects of the random policies end, and the times at which the tests evaluate them. */
const TIMES = Array.from({ length: 7 }, (_, hour) => new Date(Date.UTC(2026, 11, 1, hour)));
const [START = new Date()] = TIMES;
const AFTER_ALL = new Date("2027-01-01T00:00:00Z");

const end = fc.option(
  fc.constantFrom(...TIMES.slice(0, 6)).map((time) => time.toISOString()),
  { nil: undefined, freq: 2 },
);
const member = (id: string): fc.Arbitrary<AccessMember> =>
  fc.record({
    id: fc.constant(id),
    email: fc.constant(`${id}@example.com`),
    isAccepted: fc.nat(4).map((number) => number > 0),
    expiresAt: end,
  });
const owner = fc.option(fc.constantFrom("user0", "user1", "user2", "stranger"), {
  nil: undefined,
  freq: 2,
});

const refusedType = fc.nat(7).map((number) => (number === 0 ? "ssh-dss" : undefined));

/** Adds ends, owners and refused types to the objects of a random policy. Some owners are not members. */
const expiring = (policy: fc.Arbitrary<NamespacePolicy>): fc.Arbitrary<NamespacePolicy> =>
  fc
    .tuple(
      policy,
      fc.infiniteStream(end),
      fc.infiniteStream(owner),
      fc.infiniteStream(refusedType),
      fc.tuple(member("user0"), member("user1"), member("user2")),
    )
    .map(([{ devices, keys, rules }, ends, owners, types, members]) => ({
      devices,
      keys: keys.map((key) => ({
        ...key,
        expiresAt: ends.next().value,
        owner: owners.next().value,
        refusedType: types.next().value,
      })),
      rules: rules.map((rule) => ({ ...rule, expiresAt: ends.next().value })),
      members,
    }));

/** Returns the part of a policy that has an effect at a time, without ends, owners and refused types. */
function effectiveAt({ devices, keys, rules, members = [] }: NamespacePolicy, at: Date): NamespacePolicy {
  const lasts = (time: string | undefined) => time === undefined || new Date(time).getTime() > at.getTime();
  const present = new Set<string>();
  for (const { id, isAccepted, expiresAt } of members) if (isAccepted && lasts(expiresAt)) present.add(id);
  return {
    devices,
    keys: keys
      .filter((key) => key.refusedType === undefined)
      .filter((key) => lasts(key.expiresAt) && (key.owner === undefined || present.has(key.owner)))
      .map(({ fingerprint, name, username, filter }) => ({ fingerprint, name, username, filter })),
    rules: rules.filter((rule) => lasts(rule.expiresAt)),
  };
}

const nameOf = (fingerprint: string, login: string, address: string, uid: string) =>
  JSON.stringify([fingerprint, login, address, uid]);

/** The logins that the oracle allows at a time. */
function allowedAt(policy: NamespacePolicy, { logins, addresses }: Access["evaluated"], at: Date) {
  const effective = effectiveAt(policy, at);
  const allowed = new Set<string>();
  for (const { fingerprint } of effective.keys)
    for (const login of logins)
      for (const address of addresses)
        for (const { uid } of effective.devices)
          if (decide(effective, { fingerprint, login, address, uid }).allowed)
            allowed.add(nameOf(fingerprint, login, address, uid));
  return allowed;
}

/** Returns the ends of the logins that the oracle allows at the start: the first time at which it denies them. */
function endsBy(policy: NamespacePolicy, evaluated: Access["evaluated"]): Map<string, string | undefined> {
  const ends = new Map<string, string | undefined>();
  const later = TIMES.slice(1).map((time) => [time, allowedAt(policy, evaluated, time)] as const);
  for (const login of allowedAt(policy, evaluated, START)) {
    ends.set(login, later.find(([, allowed]) => !allowed.has(login))?.[0].toISOString());
  }
  return ends;
}

type Decided = Pick<AccessKey, "fingerprint"> & { login: string; address: string; uid: string };

function* decisionsOf(of: {
  subject: Parameters<typeof subjectFacts>[0];
  login: string;
  addresses: readonly string[];
  devices: readonly string[];
}): Generator<Decided> {
  const { id: fingerprint } = subjectFacts(of.subject);
  for (const address of of.addresses)
    for (const uid of of.devices) yield { fingerprint, login: of.login, address, uid };
}

const nameOfDecision = ({ fingerprint, login, address, uid }: Decided) =>
  nameOf(fingerprint, login, address, uid);

/** Returns the part of the policy that denies a login according to the sets of devices. */
function partDenying(
  access: Access,
  login: { readonly key: AccessKey; login: string; address: string; place: number },
) {
  const lapse = access.lapseOf(login.key);
  if (lapse) return lapse;
  const admitted = access.admitted(login.key, login.login);
  if (!admitted) return "login";
  if (!admitted.has(login.place)) return "device";
  return access.verdict(login.login, login.address).open.has(login.place) ? undefined : "rule";
}

describe("policies with ends agree with a brute-force oracle", () => {
  test("on the logins at each time, and on the explanation", { tags: ["long"] }, () => {
    const counts = { allowed: 0, expired: 0, owner: 0, type: 0 };
    fc.assert(
      fc.property(
        expiring(arbitrary.policy),
        arbitrary.evaluated,
        fc.constantFrom(...TIMES),
        (policy, evaluated, at) => {
          const expected = allowedAt(policy, evaluated, at);
          const found = new Set<string>();
          const access = evaluateAccess(policy, evaluated, undefined, at);
          for (const grant of grantsOf(access))
            for (const decision of decisionsOf(grant)) found.add(nameOfDecision(decision));
          expect(found).toEqual(expected);
          counts.allowed += found.size;
          const [login = "", address = ""] = [evaluated.logins[0], evaluated.addresses[0]];
          for (const [place, { uid }] of policy.devices.slice(0, 3).entries()) {
            for (const key of policy.keys) {
              const { fingerprint } = key;
              const explained = explain(policy, { fingerprint, login, address, uid, at });
              expect(explained.allowed).toBe(expected.has(nameOf(fingerprint, login, address, uid)));
              const { deniedBy } = explained;
              expect(partDenying(access, { key, login, address, place })).toBe(deniedBy);
              if (deniedBy === "expired" || deniedBy === "owner" || deniedBy === "type")
                counts[deniedBy] += 1;
            }
          }
        },
      ),
      { numRuns: 400 },
    );
    for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(100);
  });

  test("on the end of each grant", () => {
    const counts = { byRule: 0, ends: 0, lasts: 0 };
    fc.assert(
      fc.property(expiring(arbitrary.policy), arbitrary.evaluated, (policy, evaluated) => {
        const access = evaluateAccess(policy, evaluated, undefined, START);
        const found = new Map<string, string | undefined>();
        for (const grant of grantsOf(access)) {
          for (const decision of decisionsOf(grant)) {
            expect(found.has(nameOfDecision(decision))).toBe(false);
            found.set(nameOfDecision(decision), grant.until);
          }
          if (grant.until === undefined) counts.lasts += 1;
          else counts[grant.until === access.endOf(grant.subject) ? "ends" : "byRule"] += 1;
        }
        expect(found).toEqual(endsBy(policy, evaluated));
      }),
      { numRuns: 1500 },
    );
    for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(5);
  });

  test("on changes, with the ends before and after the change", { tags: ["long"] }, () => {
    const counts = { gained: 0, lost: 0, altered: 0 };
    const changed = arbitrary.changedPolicy.chain(({ before, after }) =>
      fc
        .tuple(expiring(fc.constant(before)), expiring(fc.constant(after)), fc.boolean())
        .map(([old, now, keepsEnds]) => ({ before: old, after: keepsEnds ? withEndsOf(old, now) : now })),
    );
    fc.assert(
      fc.property(changed, arbitrary.evaluated, ({ before, after }, evaluated) => {
        const uids = [...new Set([before, after].flatMap(({ devices }) => devices.map(({ uid }) => uid)))];
        const [was, is] = [before, after].map((policy) => evaluateAccess(policy, evaluated, uids, START)) as [
          Access,
          Access,
        ];
        const found = new Map<string, readonly unknown[]>();
        for (const change of accessChanges(was, is)) {
          for (const decision of decisionsOf(change)) {
            expect(found.has(nameOfDecision(decision))).toBe(false);
            const { before: from, after: to, untilBefore, until } = change;
            found.set(nameOfDecision(decision), [from, untilBefore, to, until]);
            counts[change.change] += 1;
          }
        }
        const [old, now] = [endsBy(before, evaluated), endsBy(after, evaluated)];
        const outcome = (ends: typeof old, name: string) => [
          ends.has(name) ? "allow" : "deny",
          ends.get(name),
        ];
        const expected = new Map<string, readonly unknown[]>();
        for (const name of new Set([...old.keys(), ...now.keys()])) {
          const both = [...outcome(old, name), ...outcome(now, name)];
          if (both[0] !== both[2] || both[1] !== both[3]) expected.set(name, both);
        }
        expect(found).toEqual(expected);
      }),
      { numRuns: 500 },
    );
    for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(100);
  });

  /** Returns the second policy with the ends, owners and refused types that its objects have in the first policy. */
  function withEndsOf(first: NamespacePolicy, second: NamespacePolicy): NamespacePolicy {
    const keys = new Map(first.keys.map((key) => [key.fingerprint, key]));
    const rules = new Map(first.rules.map((rule) => [rule.id, rule]));
    return {
      ...second,
      ...(first.members && { members: first.members }),
      keys: second.keys.map((key) => {
        const { expiresAt, owner, refusedType } = keys.get(key.fingerprint) ?? key;
        return { ...key, expiresAt, owner, refusedType };
      }),
      rules: second.rules.map((rule) => ({ ...rule, expiresAt: (rules.get(rule.id) ?? rule).expiresAt })),
    };
  }
});

test("a change has one group of devices if the key ends before the rules that allow its logins", () => {
  const devices = ["a", "b"].map((tag) => ({ uid: tag, name: tag, tags: [tag] }));
  const [first, ...later] = TIMES.slice(1, 4).map((time) => time.toISOString());
  const key = { fingerprint: "k", name: "k", username: "", filter: {}, expiresAt: first };
  const deny = { id: "0", action: "deny", active: true, priority: 1, sourceIp: "", username: "" } as const;
  const allow = { ...deny, action: "allow", priority: 2 } as const;
  const rules = devices.map(({ tags }, index) => ({
    ...allow,
    id: `${index + 1}`,
    filter: { tags },
    expiresAt: later[index],
  }));
  const [before, after] = [[], rules].map((allowing) => {
    const policy = { devices, keys: [key], rules: [{ ...deny, filter: {} }, ...allowing] };
    return evaluateAccess(policy, { logins: ["root"], addresses: ["10.0.0.1"] }, undefined, START);
  }) as [Access, Access];
  expect([...accessChanges(before, after)]).toMatchObject([
    { change: "gained", until: first, devices: ["a", "b"] },
  ]);
});

test("a text that is not a time has passed", () => {
  const key = { fingerprint: "a", name: "a", username: "", filter: {}, expiresAt: "tomorrow" };
  const policy = { devices: [{ uid: "d", name: "d", tags: [] }], keys: [key], rules: [] };
  const question = { fingerprint: "a", login: "root", address: "10.0.0.1", uid: "d" };
  expect(explain(policy, question)).toMatchObject({ allowed: false, deniedBy: "expired" });
  expect([...grantsOf(evaluateAccess(policy, { logins: ["root"], addresses: ["10.0.0.1"] }))]).toEqual([]);
});

test("a key of a refused type admits no login, also if the members are unknown", () => {
  const key = { fingerprint: "a", name: "a", username: "", filter: {}, refusedType: "ssh-dss" };
  const evaluated = { logins: ["root"], addresses: ["10.0.0.1"] };
  const question = { fingerprint: "a", login: "root", address: "10.0.0.1", uid: "d" };
  for (const members of [undefined, []]) {
    const policy = { devices: [{ uid: "d", name: "d", tags: [] }], keys: [key], rules: [], members };
    expect(explain(policy, question)).toMatchObject({ allowed: false, deniedBy: "type" });
    expect([...grantsOf(evaluateAccess(policy, evaluated))]).toEqual([]);
  }
});

test("a key whose owner cannot be looked up is evaluated as if the owner were a member", () => {
  const key = { fingerprint: "a", name: "a", username: "", filter: {}, owner: "user0" };
  const policy = { devices: [{ uid: "d", name: "d", tags: [] }], keys: [key], rules: [] };
  const question = { fingerprint: "a", login: "root", address: "10.0.0.1", uid: "d", at: AFTER_ALL };
  expect(explain(policy, question).allowed).toBe(true);
  expect(explain({ ...policy, members: [] }, question)).toMatchObject({ allowed: false, deniedBy: "owner" });
});
