import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type AccessChange,
  type AccessKey,
  type AccessQuestion,
  type AccessRule,
  type AccessSubject,
  accessChanges,
  compilePattern,
  type EvaluatedLogins,
  evaluateAccess,
  explain,
  grantsOf,
  type NamespacePolicy,
  PatternError,
  subjectFacts,
} from "../../sdk/policy/index.ts";
import * as arbitrary from "./arbitraries.ts";
import { byStrength, compiles, decide, misfits } from "./oracle.ts";

/** Fails if the random policies produced too few comparisons of one kind to be a meaningful test. */
function expectEnough(counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(200);
}

/**
 * Iterates all access questions about a policy: each combination of a key, an evaluated login, an evaluated address and
 * a device. One of the keys is not registered.
 */
function* questions(
  policy: NamespacePolicy,
  { logins, addresses }: EvaluatedLogins,
): Generator<AccessQuestion> {
  for (const fingerprint of [...policy.keys.map((key) => key.fingerprint), "unknown"])
    for (const login of logins)
      for (const address of addresses)
        for (const { uid } of policy.devices) yield { fingerprint, login, address, uid };
}

const nameOf = ({ fingerprint, login, address, uid }: AccessQuestion) =>
  JSON.stringify([fingerprint, login, address, uid]);

/**
 * All access questions that the oracle answers with "allowed": the question's name, and the firewall rule that decides.
 */
function allowedBy(policy: NamespacePolicy, evaluated: EvaluatedLogins): Map<string, AccessRule | null> {
  const allowed = new Map<string, AccessRule | null>();
  for (const question of questions(policy, evaluated)) {
    const decision = decide(policy, question);
    if (decision.allowed) allowed.set(nameOf(question), decision.rule);
  }
  return allowed;
}

/**
 * Splits a grant or an access change into single decisions, one for each of its addresses and devices. Returns their
 * names.
 */
const named = (of: {
  subject: AccessSubject;
  login: string;
  addresses: readonly string[];
  devices: readonly string[];
}) =>
  of.addresses.flatMap((address) =>
    of.devices.map((uid) =>
      nameOf({ fingerprint: subjectFacts(of.subject).id, login: of.login, address, uid }),
    ),
  );

test("the oracle rejects the patterns that RE2 rejects", () => {
  fc.assert(
    fc.property(arbitrary.patternOn(arbitrary.LOGINS), (pattern) => {
      if (compiles(pattern)) compilePattern(pattern);
      else expect(() => compilePattern(pattern)).toThrow(PatternError);
    }),
    { numRuns: 1000 },
  );
});

function compareExplanations(runs: number): void {
  const counts = { admitted: 0, allowed: 0, denied: 0, byRule: 0 };
  fc.assert(
    fc.property(arbitrary.policy, arbitrary.evaluated, (policy, evaluated) => {
      const strength = byStrength(policy.rules);
      for (const question of questions(policy, evaluated)) {
        const expected = decide(policy, question);
        const { allowed, deniedBy, rule, key, device, considered } = explain(policy, question);
        counts.admitted += Number(expected.admitted);
        counts[expected.allowed ? "allowed" : "denied"] += 1;
        counts.byRule += Number(expected.rule !== null);

        expect(allowed).toBe(expected.allowed);
        expect(rule).toBe(expected.rule);
        expect(device.uid).toBe(question.uid);
        expect(key?.fingerprint).toBe(
          policy.keys.some(({ fingerprint }) => fingerprint === question.fingerprint)
            ? question.fingerprint
            : undefined,
        );
        expect(deniedBy).toBe(refusalOf(policy, question));
        expect(considered.map((one) => one.rule)).toEqual(strength);
        for (const one of considered) {
          const misses = misfits(one.rule, device, question.login, question.address);
          expect([...one.mismatches].sort()).toEqual(misses.sort());
          const matches = one.rule === expected.rule ? "decides" : "would decide";
          expect(one.role).toBe(misses.length > 0 ? "no match" : matches);
        }
      }
    }),
    { numRuns: runs },
  );
  expectEnough(counts);
}

test("explain() makes the same decision as the oracle, and returns the reason", () =>
  compareExplanations(40));

// Some kinds of policies are so rare that they occur only in many runs.
test(
  "explain() makes the same decision as the oracle for many policies",
  { tags: ["long"], timeout: 1_800_000 },
  () => compareExplanations(400),
);

/**
 * Returns the first condition that denies a login, according to the oracle alone. Undefined if the login is allowed.
 */
function refusalOf(policy: NamespacePolicy, question: AccessQuestion) {
  const { admitted, allowed } = decide(policy, question);
  if (allowed) return undefined;
  const key = policy.keys.find(({ fingerprint }) => fingerprint === question.fingerprint);
  if (!key) return "key";
  if (admitted) return "rule";
  const everywhere = { ...policy, keys: [{ ...key, filter: {} }], rules: [] };
  return decide(everywhere, question).allowed ? "device" : "login";
}

test("verdicts agree with the oracle for each device, and reached() returns the devices for which any login is allowed", {
  tags: ["long"],
}, () => {
  const counts = { open: 0, closed: 0 };
  fc.assert(
    fc.property(arbitrary.policy, arbitrary.evaluated, (policy, evaluated) => {
      const access = evaluateAccess(policy, evaluated);
      const reached = new Set<string>();
      for (const login of evaluated.logins)
        for (const address of evaluated.addresses) {
          const { shares, open } = access.verdict(login, address);
          expect(shares.flatMap(({ devices }) => access.uidsOf(devices)).sort()).toEqual(
            policy.devices.map(({ uid }) => uid).sort(),
          );
          expect(shares.every(({ devices }) => !devices.isEmpty())).toBe(true);
          const strength: (AccessRule | null)[] = [...byStrength(policy.rules), null];
          const places = shares.map(({ reason }) => strength.indexOf(reason.rule));
          expect(places).toEqual([...places].sort((left, right) => left - right));
          for (const key of policy.keys) {
            const admitted = access.admitted(key, login);
            const reach = admitted?.new_intersection(open);
            for (const [place, { uid }] of policy.devices.entries()) {
              const expected = decide(policy, { fingerprint: key.fingerprint, login, address, uid });
              counts[expected.allowed ? "open" : "closed"] += 1;
              if (expected.allowed) reached.add(uid);
              expect(admitted?.has(place) ?? false).toBe(expected.admitted);
              expect(reach?.has(place) ?? false).toBe(expected.allowed);
              expect(open.has(place)).toBe(expected.rule?.action !== "deny");
              expect(shares.find(({ devices }) => devices.has(place))?.reason.rule).toBe(expected.rule);
            }
          }
        }
      expect(new Set(access.uidsOf(access.reached()))).toEqual(reached);
    }),
    { numRuns: 150 },
  );
  expectEnough(counts);
});

test("grants contain each login that the oracle allows once, with its rule, and no other login", {
  tags: ["long"],
}, () => {
  const counts = { allowed: 0 };
  fc.assert(
    fc.property(arbitrary.policy, arbitrary.evaluated, (policy, evaluated) => {
      const expected = allowedBy(policy, evaluated);
      counts.allowed += expected.size;
      const seen = new Map<string, AccessRule | null>();
      const groups = new Set<string>();
      for (const grant of grantsOf(evaluateAccess(policy, evaluated))) {
        const decisions = named(grant);
        expect(decisions).not.toEqual([]);
        for (const decision of decisions) {
          expect(seen.has(decision), decision).toBe(false);
          seen.set(decision, grant.rule);
        }
        // Addresses with the same decision must be in one grant, so no two grants differ only in their addresses.
        const group = JSON.stringify([
          subjectFacts(grant.subject).id,
          grant.login,
          grant.rule?.id ?? null,
          grant.devices,
        ]);
        expect(groups.has(group), group).toBe(false);
        groups.add(group);
      }
      expect(seen).toEqual(expected);

      const some = policy.keys.slice(1);
      const ofSome = [...grantsOf(evaluateAccess(policy, evaluated), some)];
      expect(new Set(ofSome.flatMap(named))).toEqual(
        new Set([...expected.keys()].filter((name) => JSON.parse(name)[0] !== policy.keys[0]?.fingerprint)),
      );
    }),
    { numRuns: 200 },
  );
  expectEnough(counts);
});

const uidsOf = (...policies: NamespacePolicy[]) => [
  ...new Set(policies.flatMap(({ devices }) => devices.map(({ uid }) => uid))),
];

/**
 * Splits access changes into single decisions. Returns the names of the gained and of the lost ones. Checks that no
 * decision occurs twice.
 */
function relation(changes: Iterable<AccessChange>): Record<AccessChange["change"], Set<string>> {
  const all = { gained: new Set<string>(), lost: new Set<string>(), altered: new Set<string>() };
  const groups = new Set<string>();
  for (const change of changes) {
    const decisions = named(change);
    expect(decisions).not.toEqual([]);
    for (const decision of decisions) {
      expect(all[change.change].has(decision), decision).toBe(false);
      all[change.change].add(decision);
    }
    const group = JSON.stringify([
      subjectFacts(change.subject).id,
      change.login,
      change.change,
      change.devices,
    ]);
    expect(groups.has(group), group).toBe(false);
    groups.add(group);
  }
  return all;
}

test("accessChanges returns exactly the decisions on which the oracle differs", () => {
  const counts = { gained: 0, lost: 0 };
  fc.assert(
    fc.property(arbitrary.changedPolicy, arbitrary.evaluated, ({ before, after }, evaluated) => {
      const [old, now] = [allowedBy(before, evaluated), allowedBy(after, evaluated)];
      const uids = uidsOf(before, after);
      const [was, is] = [evaluateAccess(before, evaluated, uids), evaluateAccess(after, evaluated, uids)];
      const changes = [...accessChanges(was, is)];
      const { gained, lost } = relation(changes);
      counts.gained += gained.size;
      counts.lost += lost.size;
      expect(gained).toEqual(new Set([...now.keys()].filter((name) => !old.has(name))));
      expect(lost).toEqual(new Set([...old.keys()].filter((name) => !now.has(name))));
      for (const { subject } of changes) {
        const isSame = (key: AccessKey) => key.fingerprint === subjectFacts(subject).id;
        expect(subject).toBe(after.keys.find(isSame) ?? before.keys.find(isSame));
      }

      // A public key has no condition that a change could alter.
      expect(relation(accessChanges(is, was))).toEqual({ gained: lost, lost: gained, altered: new Set() });
      const same = evaluateAccess(structuredClone(before), evaluated, uids);
      expect([...accessChanges(was, same)]).toEqual([]);
    }),
    { numRuns: 200 },
  );
  expectEnough(counts);
});
