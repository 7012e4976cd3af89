import type { AccessKey } from "./decisions.ts";
import { isLive, type Principal } from "./identity.ts";
import type { AccessSubject, NamespacePolicy } from "./namespacePolicy.ts";

// In legacy mode, the subject of access is a public key. In identity mode, the subject is a principal, which has SSH
// keys. A change to the mode replaces the subjects, but the users keep their SSH keys.

/**
 * A subject before (`was`) and after (`is`) a change to the policy. If one of them is undefined, the subject has no
 * access at that time.
 */
export interface SubjectPair {
  readonly was: AccessSubject | undefined;
  readonly is: AccessSubject | undefined;
}

/**
 * Pairs the subjects of two policies of different access modes. A public key and a principal form a pair if the
 * principal has this SSH key. The principal in such a pair has only this key. If the principal has other SSH keys, they
 * are in a separate pair without a public key.
 * @param at the time of the logins. SSH keys may have expired at this time
 */
export function pairsAcrossModes(before: NamespacePolicy, after: NamespacePolicy, at: Date): SubjectPair[] {
  return after.identity
    ? bySshKey(before, after, at).map(({ key, principal }) => ({ was: key, is: principal }))
    : bySshKey(after, before, at).map(({ key, principal }) => ({ was: principal, is: key }));
}

interface KeyAndPrincipal {
  readonly key: AccessKey | undefined;
  readonly principal: Principal | undefined;
}

function bySshKey(
  { keys }: Pick<NamespacePolicy, "keys">,
  { identity }: Pick<NamespacePolicy, "identity">,
  at: Date,
): KeyAndPrincipal[] {
  const principals = identity?.principals ?? [];
  const registered = new Set(keys.map(({ sshFingerprint }) => sshFingerprint));
  const holders = new Map<string, Principal>();
  const others = principals.flatMap((principal): Principal[] => {
    const { keys: own } = principal;
    // If the SSH keys are not known, they cannot be compared with the public keys of the namespace.
    if (!own) return [principal];
    const free = own.filter(({ fingerprint }) => !registered.has(fingerprint) || holders.has(fingerprint));
    const shared = own.filter((one) => !free.includes(one));
    for (const one of shared) {
      // An expired or used key gives no access, so it is not paired with a principal.
      if (isLive(one, at)) holders.set(one.fingerprint, { ...principal, keys: [one] });
    }
    if (shared.length === 0) return [principal];
    const isUsed = free.some((one) => isLive(one, at)) || !shared.some((one) => isLive(one, at));
    return isUsed ? [{ ...principal, keys: free }] : [];
  });
  return [
    ...keys.map((key) => ({ key, principal: holders.get(key.sshFingerprint ?? "") })),
    ...others.map((principal) => ({ key: undefined, principal })),
  ];
}
