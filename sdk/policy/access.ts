import type { Access, AccessMode, Decider, DeciderNouns } from "./decider.ts";
import type { EvaluatedLogins } from "./decisions.ts";
import type { Principal } from "./identity.ts";
import { IDENTITY_NOUNS, IdentityDecider } from "./identityDecider.ts";
import { LEGACY_NOUNS, LegacyDecider } from "./legacyDecider.ts";
import { pairsAcrossModes, type SubjectPair } from "./modeSwitch.ts";
import type { AccessSubject, NamespacePolicy, SubjectFacts } from "./namespacePolicy.ts";

/** Returns the decider of a policy: the object that evaluates its logins in the access mode of the policy. */
export const deciderOf = (policy: NamespacePolicy): Decider =>
  policy.identity ? new IdentityDecider(policy, policy.identity) : new LegacyDecider(policy);

/** The nouns of each access mode, for sentences about data without a policy. */
export const DECIDER_NOUNS: Readonly<Record<AccessMode, DeciderNouns>> = {
  legacy: LEGACY_NOUNS,
  identity: IDENTITY_NOUNS,
};

/** Returns the access mode of a policy. */
export const accessModeOf = (policy: NamespacePolicy): AccessMode => deciderOf(policy).mode;

/** Returns the subjects to which a policy gives or denies access. */
export const subjectsOf = (policy: NamespacePolicy): readonly AccessSubject[] => deciderOf(policy).subjects;

/** Returns true if a subject is a user or service account. */
export const isPrincipal = (subject: AccessSubject): subject is Principal => "kind" in subject;

/** Returns the id, name and kind of a subject. */
export const subjectFacts = (subject: AccessSubject): SubjectFacts =>
  isPrincipal(subject)
    ? { id: subject.id, name: subject.name, kind: subject.kind }
    : { id: subject.fingerprint, name: subject.name, kind: "key" };

/**
 * Pairs the subjects of two policies. If the access mode changes, pairs a public key with the principal that has this
 * SSH key.
 * @param at the time of the logins. SSH keys may have expired at this time
 */
export function subjectPairs(before: NamespacePolicy, after: NamespacePolicy, at: Date): SubjectPair[] {
  if (accessModeOf(before) !== accessModeOf(after)) return pairsAcrossModes(before, after, at);
  const byId = (policy: NamespacePolicy) =>
    new Map(subjectsOf(policy).map((subject) => [subjectFacts(subject).id, subject]));
  const [old, now] = [byId(before), byId(after)];
  return [...new Set([...old.keys(), ...now.keys()])].map((id) => ({ was: old.get(id), is: now.get(id) }));
}

/**
 * Prepares a policy's decisions about the evaluated login names and addresses.
 * @param uids uids of devices; default: the devices of the policy. To compare two policies, pass the same list for both
 * @param time the time of the logins. Keys, rules and memberships may have expired at this time
 */
export const evaluateAccess = (
  policy: NamespacePolicy,
  evaluated: EvaluatedLogins,
  uids: readonly string[] = policy.devices.map(({ uid }) => uid),
  time: Date = new Date(),
): Access => deciderOf(policy).access({ evaluated, uids, time });
