import fc from "fast-check";
import { expect, test } from "vitest";
import {
  accessChanges,
  evaluateAccess,
  type IdentityRules,
  isPrincipal,
  type NamespacePolicy,
  type Outcome,
  type Principal,
  type SshIdentity,
  subjectFacts,
} from "../../sdk/policy/index.ts";
import * as arbitrary from "./arbitraries.ts";
import { evaluatedIdentity, identityPolicy, NOW } from "./identityArbitraries.ts";
import { decideIdentity } from "./identityOracle.ts";
import { decide } from "./oracle.ts";

// A change of the access mode is compared with the decisions about each SSH key of the two oracles.

/** The SSH keys of the random principals, and one that belongs to no principal. */
const SSH_KEYS = [0, 1, 2, 3].flatMap((index) => [0, 1].map((key) => `SHA256:principal${index}-${key}`));

/**
 * A namespace with public keys and with access policies. Some public keys are SSH keys of principals. Every second key
 * admits every login, so that many logins are allowed in both modes.
 */
const namespaces = fc
  .tuple(
    arbitrary.policy,
    identityPolicy,
    fc.shuffledSubarray([...SSH_KEYS, "SHA256:other"], { minLength: 4 }),
    fc.boolean(),
  )
  .map(([{ keys, rules }, { devices, identity }, fingerprints, hasRules]) => {
    const registered = keys.map((key, index) => ({
      ...key,
      ...(index % 2 === 0 && { username: "", filter: {} }),
      sshFingerprint: fingerprints[index],
    }));
    return { legacy: { devices, rules: hasRules ? rules : [], keys: registered }, identity };
  });

type Login = readonly [login: string, address: string, uid: string];

const isUsable = ({ expiresAt, consumedAt }: SshIdentity) =>
  consumedAt === null && (expiresAt === null || new Date(expiresAt) > NOW);

/** Returns the outcome of a login with an SSH key. Each re-authentication counts as outdated. */
function outcomeWith(
  { policies, principals }: IdentityRules,
  devices: NamespacePolicy["devices"],
  fingerprint: string | undefined,
  [login, address, uid]: Login,
): Outcome {
  const device = devices.find((one) => one.uid === uid);
  if (!device) throw new Error(`no device ${uid}`);
  for (const principal of principals) {
    const key = principal.keys?.find((one) => one.fingerprint === fingerprint);
    if (!key) continue;
    const outdated = { ...key, lastReauthAt: null };
    const question = { principal, key: outdated, device, login, address, at: NOW };
    return decideIdentity({ policies, principals }, question).outcome;
  }
  return "deny";
}

/** Returns the outcome of a login of a principal with an SSH key that is no public key of the namespace. */
function outcomeWithout(
  identity: IdentityRules,
  { devices, keys }: NamespacePolicy,
  principal: Principal,
  where: Login,
): Outcome {
  const [login, address, uid] = where;
  const live = principal.keys?.filter(isUsable);
  const other = live?.filter(({ fingerprint }) => keys.every((key) => key.sshFingerprint !== fingerprint));
  if (other?.[0]) return outcomeWith(identity, devices, other[0].fingerprint, where);
  // With a public key of the namespace, the principal is compared as this key.
  if (live && live.length > 0) return "deny";
  const device = devices.find((one) => one.uid === uid);
  if (!device) throw new Error(`no device ${uid}`);
  return decideIdentity(identity, { principal, device, login, address, at: NOW }).outcome;
}

test.each(["identity", "legacy"] as const)(
  "a change to the mode %s has the effect on each SSH key that the oracles decide",
  (newMode) => {
    const counts = { gained: 0, lost: 0, altered: 0, same: 0, paired: 0, unpaired: 0 };
    const inOrder = <T>(legacy: T, identity: T) =>
      newMode === "identity" ? ([legacy, identity] as const) : ([identity, legacy] as const);
    fc.assert(
      fc.property(namespaces, evaluatedIdentity, ({ legacy, identity }, evaluated) => {
        const accessTo = (policy: NamespacePolicy) => evaluateAccess(policy, evaluated, undefined, NOW);
        const [before, after] = inOrder(accessTo(legacy), accessTo({ ...legacy, identity }));
        const found = new Map<string, readonly [Outcome, Outcome]>();
        for (const { subject, previous, login, addresses, devices, ...change } of accessChanges(
          before,
          after,
        )) {
          // The ends of SSH keys are compared by other tests.
          if (change.before === change.after) continue;
          const key = [subject, previous].find((one) => one && !isPrincipal(one));
          const { id } = subjectFacts(key ?? subject);
          counts[change.change] += addresses.length * devices.length;
          counts[previous ? "paired" : "unpaired"] += 1;
          if (previous) expect(isPrincipal(previous)).toBe(!isPrincipal(subject));
          for (const address of addresses)
            for (const uid of devices) {
              const name = JSON.stringify([id, login, address, uid]);
              expect(found.has(name), name).toBe(false);
              found.set(name, [change.before, change.after]);
            }
        }
        const expected = new Map<string, readonly [Outcome, Outcome]>();
        const expectOutcomes = (id: string, where: Login, inLegacy: Outcome, inIdentity: Outcome) => {
          if (inLegacy === inIdentity) counts.same += Number(inLegacy !== "deny");
          else expected.set(JSON.stringify([id, ...where]), inOrder(inLegacy, inIdentity));
        };
        for (const login of evaluated.logins)
          for (const address of evaluated.addresses)
            for (const { uid } of legacy.devices) {
              const where = [login, address, uid] as const;
              for (const { fingerprint, sshFingerprint } of legacy.keys) {
                const { allowed } = decide(legacy, { fingerprint, login, address, uid });
                const now = outcomeWith(identity, legacy.devices, sshFingerprint, where);
                expectOutcomes(fingerprint, where, allowed ? "allow" : "deny", now);
              }
              for (const principal of identity.principals)
                expectOutcomes(
                  principal.id,
                  where,
                  "deny",
                  outcomeWithout(identity, legacy, principal, where),
                );
            }
        expect(found).toEqual(expected);
      }),
      { numRuns: 250 },
    );
    for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(20);
  },
);
