import { TypedFastBitSet } from "typedfastbitset";
import type {
  AccessMode,
  Decider,
  DeciderNouns,
  DecidingObject,
  Decisions,
  Reason,
  RuleSet,
  Verdict,
} from "./decider.ts";
import type { AccessKey, AccessRule, DeviceFilter, EvaluatedLogins } from "./decisions.ts";
import { type DeviceSet, DeviceSets, unionOf } from "./deviceSets.ts";
import type { KeyLapse } from "./expiry.ts";
import type { Outcome, Principal } from "./identity.ts";
import { IDENTITY_NOUNS, IdentityDecider } from "./identityDecider.ts";
import { LEGACY_NOUNS, LegacyDecider } from "./legacyDecider.ts";
import { pairsAcrossModes, type SubjectPair } from "./modeSwitch.ts";
import type { AccessSubject, NamespacePolicy, SubjectFacts } from "./namespacePolicy.ts";

/** Returns the decider of a policy. */
export const deciderOf = (policy: NamespacePolicy): Decider =>
  policy.identity ? new IdentityDecider(policy, policy.identity) : new LegacyDecider(policy);

/** The nouns of each access mode, for texts about data without a policy. */
export const DECIDER_NOUNS: Readonly<Record<AccessMode, DeciderNouns>> = {
  legacy: LEGACY_NOUNS,
  identity: IDENTITY_NOUNS,
};

/** Returns the access mode in which a policy decides. */
export const accessModeOf = (policy: NamespacePolicy): AccessMode => deciderOf(policy).mode;

/** Returns the subjects whose access a policy decides. */
export const subjectsOf = (policy: NamespacePolicy): readonly AccessSubject[] => deciderOf(policy).subjects;

/** Returns true for a user or service account. */
export const isPrincipal = (subject: AccessSubject): subject is Principal => "kind" in subject;

/** Returns the identity of a subject. */
export const subjectFacts = (subject: AccessSubject): SubjectFacts =>
  isPrincipal(subject)
    ? { id: subject.id, name: subject.name, kind: subject.kind }
    : { id: subject.fingerprint, name: subject.name, kind: "key" };

/**
 * Returns the subjects of two policies in pairs. If the access mode changes, a public key and a principal are a pair if
 * the principal has this SSH key.
 * @param at the time of the logins, at which SSH keys may have expired
 */
export function subjectPairs(before: NamespacePolicy, after: NamespacePolicy, at: Date): SubjectPair[] {
  if (accessModeOf(before) !== accessModeOf(after)) return pairsAcrossModes(before, after, at);
  const byId = (policy: NamespacePolicy) =>
    new Map(subjectsOf(policy).map((subject) => [subjectFacts(subject).id, subject]));
  const [old, now] = [byId(before), byId(after)];
  return [...new Set([...old.keys(), ...now.keys()])].map((id) => ({ was: old.get(id), is: now.get(id) }));
}

/**
 * The decisions of a policy about all evaluated login names and addresses, as sets of devices. The decisions are the
 * same as those of `explain` and `explainIdentity`, which decide one login at a time. In identity mode, every
 * re-authentication counts as outdated.
 */
export class Access {
  readonly policy: NamespacePolicy;
  readonly decider: Decider;
  readonly evaluated: EvaluatedLogins;
  /** Uids of the devices. A {@link DeviceSet} contains indexes of this list. */
  readonly uids: readonly string[];
  /** The time of the logins. */
  readonly time: Date;
  readonly #sets: DeviceSets;
  readonly #decisions: Decisions;

  /**
   * Prepares the decisions of a policy about the evaluated login names and addresses.
   * @param uids uids of devices; default: the devices of the policy. To compare two policies, pass the same list for
   * both
   * @param at the time of the logins, at which keys, rules and memberships may have expired
   */
  constructor(
    policy: NamespacePolicy,
    evaluated: EvaluatedLogins,
    uids: readonly string[] = policy.devices.map(({ uid }) => uid),
    at: Date = new Date(),
  ) {
    this.policy = policy;
    this.decider = deciderOf(policy);
    this.time = at;
    this.evaluated = evaluated;
    this.uids = uids;
    this.#sets = new DeviceSets(policy.devices, new Map(uids.map((uid, place) => [uid, place])));
    this.#decisions = this.decider.decisions(this.#sets, at);
  }

  /** The public keys, or the principals in identity mode. */
  get subjects(): readonly AccessSubject[] {
    return this.decider.subjects;
  }

  /**
   * The public keys that may admit logins: their type is not refused, and they have not expired or lost their owner.
   * Empty in identity mode.
   */
  get keys(): readonly AccessKey[] {
    return this.#decisions.keys;
  }

  /** The rules in force, strongest first. A {@link RuleSet} contains indexes of this list. Empty in identity mode. */
  get rules(): readonly AccessRule[] {
    return this.#decisions.rules;
  }

  /** The objects that decide and are in force: {@link keys} and {@link rules}, or the access policies. */
  get objects(): readonly DecidingObject[] {
    return this.#decisions.objects;
  }

  /**
   * Returns an object that is the same for subjects with the same verdicts. All public keys have the same verdicts: the
   * firewall's.
   */
  groupOf(subject: AccessSubject | undefined): object {
    return this.#decisions.groupOf(subject);
  }

  /**
   * Returns the outcome of a subject's login.
   * @param outcome the decision of the rules or policies
   */
  outcomeOf(outcome: Reason["outcome"], subject: AccessSubject): Outcome {
    return this.#decisions.outcomeOf(outcome, subject);
  }

  /**
   * Returns the time from which a subject has no access, regardless of the rules: the end of the key or of its owner's
   * membership, or the end of the last SSH key of a principal. Undefined if no time is known.
   */
  endOf(subject: AccessSubject): string | undefined {
    return this.#decisions.endOf(subject);
  }

  /** Returns the reason why a key admits no login; undefined if it may admit logins, and for a principal. */
  lapseOf(subject: AccessSubject): KeyLapse | undefined {
    return this.#decisions.lapseOf(subject);
  }

  /**
   * Returns the devices that a filter matches.
   * @param broken whether a pattern that does not compile matches every device (true) or none (false)
   */
  devicesOf(filter: DeviceFilter, broken: boolean): DeviceSet {
    return this.#sets.of(filter, broken);
  }

  /**
   * Returns the devices on which a key admits a login name, regardless of the firewall. Returns undefined if the key
   * does not admit the login name, has a refused type, has expired, or belongs to a user who is not a member. A principal
   * is admitted to every device, unless the principal has no SSH key and cannot confirm one.
   */
  admitted(subject: AccessSubject, login: string): DeviceSet | undefined {
    return this.#decisions.admitted(subject, login);
  }

  /**
   * Returns the rules whose pattern matches a login name. For login names that the same rules match, it returns the
   * same object.
   */
  rulesForLogin(login: string): RuleSet {
    return this.#decisions.rulesForLogin(login);
  }

  /**
   * Returns the rules whose pattern matches an address. For addresses that the same rules match, it returns the same
   * object.
   */
  rulesForAddress(address: string): RuleSet {
    return this.#decisions.rulesForAddress(address);
  }

  /**
   * Returns the decisions about a login name from an address. For logins that the same rules match, it returns the same
   * object.
   * @param subject the principal, in identity mode; the decisions of the firewall are the same for all keys
   */
  verdict(login: string, address: string, subject?: AccessSubject): Verdict {
    return this.#decisions.verdict(login, address, subject);
  }

  /** Returns the devices that at least one subject can reach with at least one evaluated login name and address. */
  reached(): DeviceSet {
    const reached: DeviceSet = new TypedFastBitSet();
    const { logins, addresses } = this.evaluated;
    for (const [, alike] of Map.groupBy(this.subjects, (subject) => this.groupOf(subject))) {
      for (const login of logins) {
        const admitted = unionOf(alike.map((subject) => this.admitted(subject, login)));
        if (admitted.isEmpty()) continue;
        const open = unionOf(addresses.map((address) => this.verdict(login, address, alike[0]).open));
        reached.union(admitted.new_intersection(open));
      }
    }
    return reached;
  }

  /** Returns the uids of a set of devices. */
  uidsOf(devices: DeviceSet): string[] {
    const { uids } = this;
    return devices.array().map((place) => uids[place] ?? "");
  }
}
