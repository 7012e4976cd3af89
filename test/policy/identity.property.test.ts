import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Access,
  type AccessPolicy,
  accessChanges,
  evaluateAccess,
  explainIdentity,
  type Grant,
  grantsOf,
  type IdentityRules,
  loginsToEvaluate,
  type NamespacePolicy,
  type Outcome,
  type Principal,
} from "../../sdk/policy/index.ts";
import * as arbitrary from "./identityArbitraries.ts";
import {
  allowedLogins,
  decideIdentity,
  entryContains,
  type PrincipalLogin,
  unfit,
} from "./identityOracle.ts";

const { NOW } = arbitrary;
type Namespace = NamespacePolicy & { readonly identity: IdentityRules };
type Evaluated = Access["evaluated"];

/** Fails if the random policies produced too few comparisons of one kind to be a meaningful test. */
function expectEnough(counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(5);
}

/** Iterates all logins: of each principal without a given key, and of each key. */
function* loginsOf({ devices, identity }: Namespace, { logins, addresses }: Evaluated) {
  for (const principal of identity.principals)
    for (const key of [undefined, ...(principal.keys ?? [])])
      for (const login of logins)
        for (const address of addresses)
          for (const device of devices)
            yield { principal, key, device, login, address, at: NOW } satisfies PrincipalLogin;
}

const questionOf = ({ principal, key, device, login, address, at }: PrincipalLogin) => ({
  subject: key?.fingerprint ?? principal.id,
  login,
  address,
  uid: device.uid,
  at,
});

const explained = (policy: Namespace, login: PrincipalLogin) => explainIdentity(policy, questionOf(login));
const isAllowed = (policy: Namespace, login: PrincipalLogin) => explained(policy, login).outcome !== "deny";

const withPolicies = (policy: Namespace, policies: readonly AccessPolicy[]): Namespace => ({
  ...policy,
  identity: { ...policy.identity, policies },
});

describe("explainIdentity() agrees with the oracle", () => {
  test("on the outcome, the reason, and the role of each policy", () => {
    const counts = { allow: 0, reauthentication: 0, approval: 0, unknown: 0, deny: 0, fresh: 0 };
    fc.assert(
      fc.property(arbitrary.identityPolicy, arbitrary.evaluatedIdentity, (policy, evaluated) => {
        for (const login of loginsOf(policy, evaluated)) {
          const { outcome, deciding } = decideIdentity(policy.identity, login);
          const { considered, reauthPeriod, ...explanation } = explained(policy, login);
          expect(explanation).toEqual({
            outcome,
            principal: login.principal,
            device: login.device,
            deniedBy: outcome === "deny" ? refusalOf(policy, login) : undefined,
          });
          counts[outcome] += 1;
          counts.fresh += Number(outcome === "allow" && reauthPeriod !== undefined);
          const isDenied = deciding.some(({ action }) => action === "deny");
          const expected = policy.identity.policies.map((one) => {
            const misses = unfit(one, login, login.principal).sort();
            const effect = one.action === "deny" ? "denies" : isDenied ? "no effect" : "allows";
            return [one.id, misses.length > 0 ? "no match" : effect, ...misses];
          });
          const found = considered.map((one) => [one.policy.id, one.role, ...one.mismatches.toSorted()]);
          expect(found.sort()).toEqual(expected.sort());
        }
      }),
      { numRuns: 200 },
    );
    expectEnough(counts);
  });

  function refusalOf(policy: Namespace, login: PrincipalLogin) {
    if (policy.identity.policies.length === 0) return "policies";
    const everything = { subject: { type: "user", value: login.principal.id }, action: "allow" } as const;
    const all = { id: "all", name: "all", filter: {}, logins: ["*"], sourceIps: [] };
    const open = { ...all, ...everything, requireReauth: false, reauthPeriod: null };
    const alone = { ...policy.identity, policies: [open] };
    if (decideIdentity(alone, login).outcome === "deny") return "key";
    const { deciding } = decideIdentity(policy.identity, login);
    return deciding.length > 0 ? "policy" : "default";
  }

  test("on unknown keys, which no policy refuses before their user is known", { tags: ["long"] }, () => {
    const counts = { approval: 0, unknown: 0, deny: 0 };
    fc.assert(
      fc.property(arbitrary.identityPolicy, fc.constantFrom(...arbitrary.CLIENTS), (policy, address) => {
        const { policies, principals } = policy.identity;
        const unread = principals.some(({ keys }) => keys === undefined);
        for (const { uid } of policy.devices) {
          const question = { subject: "SHA256:other", login: "root", address, uid, at: NOW };
          const { outcome, deniedBy, principal } = explainIdentity(policy, question);
          expect(outcome).toBe(policies.length === 0 ? "deny" : unread ? "unknown" : "approval");
          expect(deniedBy).toBe(policies.length === 0 ? "policies" : undefined);
          expect(principal).toBeUndefined();
          counts[outcome as keyof typeof counts] += 1;
        }
      }),
      { numRuns: 400 },
    );
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(0);
  });

  test("and rejects devices and principals that do not exist", () => {
    const policy = {
      devices: [{ uid: "a", name: "a", tags: [] }],
      identity: { policies: [], principals: [] },
    };
    const question = { login: "root", address: "10.0.0.1", at: NOW };
    expect(() => explainIdentity(policy, { ...question, subject: "SHA256:x", uid: "b" })).toThrow(RangeError);
    expect(() => explainIdentity(policy, { ...question, subject: "x", uid: "a" })).toThrow(RangeError);
  });
});

/** A key that works. With this key, the policies alone decide. */
const LIVE = { fingerprint: "SHA256:live", expiresAt: null, consumedAt: null, lastReauthAt: null };
const COUNTED: Readonly<Record<Outcome, "open" | "held" | "closed">> = {
  allow: "open",
  reauthentication: "held",
  deny: "closed",
  approval: "open",
  unknown: "open",
};

const nameOf = (principal: string, login: string, address: string, uid: string) =>
  JSON.stringify([principal, login, address, uid]);

describe("the evaluation of sets agrees with the oracle", () => {
  test("on verdicts, devices and outcomes of each principal", { tags: ["long"] }, () => {
    const counts = { open: 0, held: 0, closed: 0 };
    fc.assert(
      fc.property(arbitrary.identityPolicy, arbitrary.evaluatedIdentity, (policy, evaluated) => {
        const access = evaluateAccess(policy, evaluated, undefined, NOW);
        expect(access.subjects).toBe(policy.identity.principals);
        const reached = new Set<string>();
        for (const principal of policy.identity.principals)
          for (const login of evaluated.logins)
            for (const address of evaluated.addresses) {
              const { shares, open, held } = access.verdict(login, address, principal);
              const uids = shares.flatMap(({ devices }) => access.uidsOf(devices));
              expect(uids.length).toBe(new Set(uids).size);
              for (const [place, device] of policy.devices.entries()) {
                const question = { principal, login, address, device, at: NOW };
                const { outcome } = decideIdentity(policy.identity, question);
                const live = { ...question, principal: { ...principal, keys: [LIVE] } };
                const ruled = decideIdentity(policy.identity, live);
                const reason = shares.find(({ devices }) => devices.has(place))?.reason;
                const decision = reason?.outcome ?? "deny";
                const isAdmitted = access.admitted(principal, login)?.has(place) ?? false;
                const isUser = principal.kind === "user";
                expect([
                  reason?.policy?.id,
                  open.has(place),
                  isUser && held.has(place),
                  isUser ? decision : "",
                  isAdmitted ? access.outcomeOf(decision, principal) : "deny",
                ]).toEqual([
                  ruled.deciding[0]?.id,
                  ruled.outcome !== "deny",
                  ruled.outcome === "reauthentication",
                  isUser ? ruled.outcome : "",
                  outcome,
                ]);
                counts[COUNTED[ruled.outcome]] += 1;
                if (outcome !== "deny") reached.add(device.uid);
              }
            }
        expect(new Set(access.uidsOf(access.reached()))).toEqual(reached);
      }),
      { numRuns: 200 },
    );
    expectEnough(counts);
  });

  test("on grants, which contain each allowed login once, with its policy and outcome", () => {
    const counts = { allow: 0, reauthentication: 0, approval: 0, unknown: 0 };
    fc.assert(
      fc.property(arbitrary.identityPolicy, arbitrary.evaluatedIdentity, (policy, evaluated) => {
        const expected = allowedLogins(policy, evaluated, NOW);
        const access = evaluateAccess(policy, evaluated, undefined, NOW);
        const seen = new Map<string, Grant>();
        for (const grant of grantsOf(access)) {
          const names = namesOf(grant);
          expect(names).not.toEqual([]);
          for (const name of names) {
            expect(seen.has(name), name).toBe(false);
            seen.set(name, grant);
          }
        }
        expect(new Set(seen.keys())).toEqual(new Set(expected.keys()));
        for (const [name, { outcome, policy: granting, rule }] of seen) {
          const answer = expected.get(name);
          expect([outcome, granting?.id, rule]).toEqual([answer?.outcome, answer?.deciding[0]?.id, null]);
          counts[outcome as keyof typeof counts] += 1;
        }
      }),
      { numRuns: 300 },
    );
    expectEnough(counts);
  });

  const namesOf = (of: Pick<Grant, "subject" | "login" | "addresses" | "devices">) =>
    of.addresses.flatMap((address) =>
      of.devices.map((uid) => nameOf((of.subject as Principal).id, of.login, address, uid)),
    );

  test("on changes, with the outcomes before and after the change", { tags: ["long"] }, () => {
    const counts = { gained: 0, lost: 0, altered: 0 };
    fc.assert(
      fc.property(arbitrary.changedIdentity, arbitrary.evaluatedIdentity, ({ before, after }, evaluated) => {
        const [old, now] = [allowedLogins(before, evaluated, NOW), allowedLogins(after, evaluated, NOW)];
        const uids = [...new Set([before, after].flatMap(({ devices }) => devices.map(({ uid }) => uid)))];
        const was = evaluateAccess(before, evaluated, uids, NOW);
        const is = evaluateAccess(after, evaluated, uids, NOW);
        const found = new Map<string, readonly [Outcome, Outcome]>();
        const groups = new Set<string>();
        for (const change of accessChanges(was, is)) {
          if (change.before === change.after) {
            expect(change.until).not.toBe(change.untilBefore);
            continue;
          }
          expect(change.change).toBe(changeOf(change.before, change.after));
          // All devices with the same outcomes and ends for a login are in one change.
          for (const address of change.addresses) {
            const outcomes = [change.before, change.after, change.untilBefore, change.until];
            const group = JSON.stringify([change.subject, change.login, address, outcomes]);
            expect(groups.has(group), group).toBe(false);
            groups.add(group);
          }
          for (const name of namesOf(change)) {
            expect(found.has(name), name).toBe(false);
            found.set(name, [change.before, change.after]);
            counts[change.change] += 1;
          }
        }
        const outcomes = new Map(
          [...new Set([...old.keys(), ...now.keys()])].map((name) => [
            name,
            [old.get(name)?.outcome ?? "deny", now.get(name)?.outcome ?? "deny"] as const,
          ]),
        );
        expect(found).toEqual(new Map([...outcomes].filter(([, [from, to]]) => from !== to)));
        const same = evaluateAccess(structuredClone(before), evaluated, uids, NOW);
        expect([...accessChanges(was, same)]).toEqual([]);
      }),
      { numRuns: 600 },
    );
    expectEnough(counts);
  });

  const changeOf = (before: Outcome, after: Outcome) =>
    before === "deny" ? "gained" : after === "deny" ? "lost" : "altered";
});

test("a change from legacy mode to identity mode loses the access of keys and gains that of principals", () => {
  fc.assert(
    fc.property(arbitrary.identityPolicy, arbitrary.evaluatedIdentity, (policy, evaluated) => {
      const key = { fingerprint: "key", name: "laptop", username: "", filter: {} };
      const legacy = { ...policy, keys: [key], rules: [], identity: undefined };
      const [before, after] = [legacy, { ...policy, keys: [key] }].map((one) =>
        evaluateAccess(one, evaluated, undefined, NOW),
      ) as [Access, Access];
      const changes = [...accessChanges(before, after)];
      const [lost, gained] = [false, true].map((isGained) =>
        changes.filter(({ change }) => (change === "gained") === isGained),
      ) as [typeof changes, typeof changes];
      expect(lost.every(({ subject, before: was }) => subject === key && was === "allow")).toBe(true);
      const count = (some: typeof changes) =>
        some.reduce((sum, { addresses, devices }) => sum + addresses.length * devices.length, 0);
      const { logins, addresses } = evaluated;
      expect(count(lost)).toBe(logins.length * addresses.length * policy.devices.length);
      expect(count(gained)).toBe(allowedLogins(policy, evaluated, NOW).size);
    }),
  );
});

describe("the algebra of access policies", () => {
  const policies = fc.tuple(
    arbitrary.identityPolicy,
    arbitrary.evaluatedIdentity,
    arbitrary.accessPolicy("added"),
  );

  /** Checks a relation between the decisions of two policies for each login. */
  function compareAll(
    change: (policy: Namespace, added: AccessPolicy) => readonly [before: Namespace, after: Namespace],
    check: (before: boolean, after: boolean, login: PrincipalLogin) => void,
  ): void {
    let differing = 0;
    fc.assert(
      fc.property(policies, ([policy, evaluated, added]) => {
        const [before, after] = change(policy, added);
        for (const login of loginsOf(after, evaluated)) {
          const [was, is] = [isAllowed(before, login), isAllowed(after, login)];
          differing += Number(was !== is);
          check(was, is, login);
        }
      }),
      { numRuns: 70 },
    );
    expect(differing).toBeGreaterThan(0);
  }

  const adding = (policy: Namespace, ...added: readonly AccessPolicy[]) =>
    withPolicies(policy, [...policy.identity.policies, ...added]);

  test("a policy that denies a login wins, whatever policies are added", { tags: ["long"] }, () => {
    const added = fc.array(arbitrary.accessPolicy("more"), { maxLength: 3 });
    fc.assert(
      fc.property(arbitrary.identityPolicy, arbitrary.evaluatedIdentity, added, (policy, evaluated, more) => {
        for (const login of loginsOf(policy, evaluated)) {
          const { principal, address } = login;
          const deny: AccessPolicy = {
            id: "deny",
            name: "zzz",
            action: "deny",
            requireReauth: false,
            reauthPeriod: null,
            subject: { type: "user", value: principal.id },
            filter: { hostname: ".*" },
            logins: [login.login],
            sourceIps: [address],
          };
          expect(isAllowed(adding(policy, deny, ...more), login)).toBe(false);
        }
      }),
      { numRuns: 30 },
    );
  });

  test("a policy that allows never takes access away", { tags: ["long"] }, () => {
    compareAll(
      (policy, added) => [policy, adding(policy, { ...added, action: "allow" })],
      (was, is) => expect(is || !was).toBe(true),
    );
  });

  test("a policy that denies never gives access", { tags: ["long"] }, () => {
    compareAll(
      (policy, added) => [policy, adding(policy, { ...added, action: "deny" })],
      (was, is) => expect(was || !is).toBe(true),
    );
  });

  test("a wider subject never takes access of users away", { tags: ["long"] }, () => {
    const subjects = (given: Namespace, added: AccessPolicy) => {
      const [user] = given.identity.principals;
      // With a second user of the same role, the role matches more logins than the user.
      const second = { id: "second", name: "second@example.org", kind: "user", keys: [] } as const;
      const principals = [...given.identity.principals, { ...second, role: user?.role ?? "observer" }];
      const policy = { ...given, identity: { ...given.identity, principals } };
      const allowing = (type: "user" | "role" | "all-members", value = "") =>
        adding(policy, { ...added, action: "allow", subject: { type, value } });
      return [allowing("user", user?.id), allowing("role", user?.role), allowing("all-members")] as const;
    };
    for (const [narrow, wide] of [
      [0, 1],
      [1, 2],
    ] as const) {
      compareAll(
        (policy, added) => [subjects(policy, added)[narrow], subjects(policy, added)[wide]],
        (was, is, { principal }) => expect(is || !was || principal.kind === "service account").toBe(true),
      );
    }
  });

  test("an empty filter, no tags and the pattern .* match every device", { tags: ["long"] }, () => {
    fc.assert(
      fc.property(policies, ([policy, evaluated, added]) => {
        const filters = [{}, { tags: [] }, { hostname: "" }, { hostname: ".*" }];
        const [empty, ...others] = filters.map((filter) => adding(policy, { ...added, filter }));
        for (const login of loginsOf(policy, evaluated)) {
          const { outcome } = explained(empty as Namespace, login);
          for (const other of others) expect(explained(other, login).outcome).toBe(outcome);
        }
        const [grants, ...more] = [empty as Namespace, ...others].map((one) =>
          [...grantsOf(evaluateAccess(one, evaluated, undefined, NOW))].map((grant) => ({
            ...grant,
            policy: 0,
          })),
        );
        for (const other of more) expect(other).toEqual(grants);
      }),
      { numRuns: 60 },
    );
  });

  test("the order of policies has no effect", { tags: ["long"] }, () => {
    const shuffled = arbitrary.identityPolicy.chain((policy) => {
      const { policies: all } = policy.identity;
      return fc.tuple(
        fc.constant(policy),
        fc.shuffledSubarray([...all], { minLength: all.length }).map((order) => withPolicies(policy, order)),
      );
    });
    fc.assert(
      fc.property(shuffled, arbitrary.evaluatedIdentity, ([policy, other], evaluated) => {
        for (const login of loginsOf(policy, evaluated))
          expect(explained(other, login)).toEqual(explained(policy, login));
        const [grants, others] = [policy, other].map((one) => [
          ...grantsOf(evaluateAccess(one, evaluated, undefined, NOW)),
        ]);
        expect(others).toEqual(grants);
      }),
      { numRuns: 100 },
    );
  });
});

describe("loginsToEvaluate() in identity mode", () => {
  const namespaceOf = (...some: readonly Partial<AccessPolicy>[]): NamespacePolicy => ({
    devices: [],
    keys: [],
    rules: [],
    identity: {
      principals: [],
      policies: some.map((one, index) => ({
        id: `${index}`,
        name: "",
        subject: { type: "all-members", value: "" },
        filter: {},
        logins: ["*"],
        sourceIps: [],
        action: "allow",
        requireReauth: false,
        reauthPeriod: null,
        ...one,
      })),
    },
  });

  test("returns an address with the same decisions for each address", { tags: ["long"] }, () => {
    const counts = { inside: 0, outside: 0 };
    fc.assert(
      fc.property(
        fc.array(arbitrary.someNetwork, { minLength: 1, maxLength: 6 }),
        fc.array(arbitrary.someAddress, { minLength: 1, maxLength: 20 }),
        (networks, clients) => {
          const { addresses } = loginsToEvaluate([namespaceOf({ sourceIps: networks })]);
          const partOf = (address: string) =>
            networks.map((network) => (entryContains(network, address) ? "1" : "0")).join("");
          const evaluated = new Set(addresses.map(partOf));
          for (const client of clients) {
            expect(evaluated.has(partOf(client)), `${client} in ${networks.join(" ")}`).toBe(true);
            counts[partOf(client).includes("1") ? "inside" : "outside"] += 1;
          }
        },
      ),
      { numRuns: 1000 },
    );
    expectEnough(counts);
  });

  test("returns the literal logins of the policies, and no login or address of keys and rules", () => {
    const rule = { id: "1", action: "deny", active: true, priority: 1, filter: {} } as const;
    const policy = {
      ...namespaceOf({ logins: ["ana", "roo*", "*"] }, { logins: ["ana"], sourceIps: ["10.1.2.3/8"] }),
      keys: [{ fingerprint: "1", name: "a", username: "^eve$", filter: {} }],
      rules: [{ ...rule, sourceIp: "^192\\.168\\.", username: "^bob$" }],
    };
    expect(loginsToEvaluate([policy])).toEqual({
      logins: ["root", "otheruser", "ana", "roo*"],
      addresses: ["192.0.2.1", "10.0.0.0"],
    });
    const { logins, addresses } = loginsToEvaluate([policy, { ...policy, identity: undefined }]);
    expect(logins).toEqual(expect.arrayContaining(["ana", "eve", "bob"]));
    expect(addresses).toEqual(expect.arrayContaining(["10.0.0.0", "192.168.0.1"]));
  });

  test.each([
    [
      ["0.0.0.0/0", "::/0"],
      ["192.0.2.1", "0.0.0.0", "::"],
    ],
    [["192.0.2.0/24"], ["192.0.2.1", "192.0.2.0", "2001:db8::1"]],
    [
      ["128.0.0.0/1", "::/0"],
      ["192.0.2.1", "128.0.0.0", "::", "0.0.0.0"],
    ],
    [
      ["0.0.0.0/0", "8000::/1", "2001:db8::/32"],
      ["192.0.2.1", "0.0.0.0", "8000::", "2001:db8::", "2001:db9::"],
    ],
    [
      ["10.0.0.0/8", "10.1.0.0/16"],
      ["192.0.2.1", "10.0.0.0", "10.1.0.0", "10.2.0.0"],
    ],
    [["::ffff:10.0.0.0/104", "10.0.0.0/33"], ["192.0.2.1"]],
  ])("returns for %j the addresses %j", (sourceIps, expected) => {
    expect(loginsToEvaluate([namespaceOf({ sourceIps })]).addresses).toEqual(expected);
  });
});
