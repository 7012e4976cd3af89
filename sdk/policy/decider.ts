import { TypedFastBitSet } from "typedfastbitset";
import type {
  AccessDevice,
  AccessKey,
  AccessRule,
  DenyingPart,
  DeviceFilter,
  EvaluatedLogins,
} from "./decisions.ts";
import { type DeviceSet, DeviceSets, unionOf } from "./deviceSets.ts";
import type { KeyLapse } from "./expiry.ts";
import type { AccessPolicy, IdentityExplanation, Outcome } from "./identity.ts";
import type { AccessSubject, NamespacePolicy, SubjectFacts } from "./namespacePolicy.ts";
import type { Subject } from "./pattern.ts";

/** The access mode of a namespace. It determines the kind of objects that authorize logins. */
export type AccessMode = "legacy" | "identity";

/**
 * Evaluates logins to the devices of a namespace, for one access mode. In legacy mode, the decider evaluates public
 * keys and firewall rules. In identity mode, it evaluates access policies and their principals. The decider contains
 * everything that differs between the modes, including the words that reports use.
 */
export interface Decider<S extends AccessSubject = AccessSubject> {
  readonly mode: AccessMode;
  readonly nouns: DeciderNouns;
  /** The subjects to which the policy gives or denies access. */
  readonly subjects: readonly S[];
  /** The access policies. Empty in legacy mode. */
  readonly policies: readonly AccessPolicy[];
  /** All objects that authorize logins, including those that are not in force. */
  readonly objects: readonly DecidingObject[];
  /** The numbers of subjects, and of rules or policies. */
  readonly counts: DecidingCounts;
  /** True if the policy denies every login because no object allows any login. */
  readonly deniesEverything: boolean;
  /**
   * The reason why a login is denied if no rule or policy matches it, as part of a sentence. Undefined if the mode
   * allows such a login.
   */
  readonly defaultDenial: string | undefined;
  /** The expiry times of the objects on which the access depends, in RFC 3339. */
  readonly ends: readonly string[];
  /** Returns the login names and addresses that occur in the objects. */
  mentioned(): MentionedLogins;
  /** Returns the policy with only the subjects for which `isKept` returns true. */
  withSubjects(isKept: (subject: Pick<SubjectFacts, "id" | "name">) => boolean): NamespacePolicy;
  /** Returns the decision about one login. @throws RangeError if the policy does not have the device or the subject */
  decide(subject: S, login: SingleLogin): Decision;
  /**
   * Returns a login name and a device that a subject allows. If the subject allows none, returns the first login name
   * or device. Returns undefined if the policy has no device.
   * @param logins the login names to choose from
   */
  exampleFor(
    subject: S,
    logins: readonly string[],
  ): { readonly login: string; readonly device: AccessDevice } | undefined;
  /**
   * Returns the reason why a subject allows different devices or logins after a change to the policy. The reason is a
   * sentence without a period.
   */
  changedAdmission(before: S, after: S): string;
  /** Prepares the decisions about all evaluated logins. */
  access(evaluation: Evaluation): Access<S>;
}

/** A noun in the singular and in the plural. */
export type Noun = readonly [one: string, several: string];

/** The nouns of an access mode. */
export interface DeciderNouns {
  /** The noun for a subject: `key`, or `user or service account`. */
  readonly subject: Noun;
  /** The short noun for a subject: `key` or `principal`. */
  readonly subjectInShort: Noun;
  /** The name of the flag, query field and column for subjects: `key` or `user`. */
  readonly selector: "key" | "user";
  /** The noun for an object that allows or denies logins: `firewall rule` or `access policy`. */
  readonly object: Noun;
  /** The short noun for an object that allows or denies logins: `rule` or `policy`. */
  readonly objectInShort: string;
  /** The noun for the source of evaluated logins: `patterns` or `policies`. */
  readonly loginSources: string;
  /** The objects that authorize logins, as the subject of a sentence: `public keys` or `access policies`. */
  readonly basis: string;
}

/** An object that authorizes logins: a public key, a firewall rule or an access policy. */
export interface DecidingObject {
  readonly kind: "key" | "rule" | "accessPolicy";
  /** The fingerprint of a key, or the id of a rule or access policy. */
  readonly id: string;
  /** The name of a key or access policy, or the id of a rule. */
  readonly name: string;
  /** The noun for the object in sentences. */
  readonly noun: "key" | "rule" | "access policy";
  /** Properties that sentences list after the name of the object: `allow, priority 7`. Undefined for a key. */
  readonly details: string | undefined;
  /** The effect on matching logins. `admit`: the key accepts the login, and the firewall then allows or denies it. */
  readonly effect: "admit" | "allow" | "deny";
  /**
   * True if the object gives access. False for an allow rule of the firewall. The firewall allows logins by default, so
   * an allow rule only limits other rules.
   */
  readonly givesAccess: boolean;
  readonly filter: DeviceFilter;
  /** The patterns, including empty patterns. */
  readonly patterns: readonly DecidingPattern[];
  /** The expiry time of the object, in RFC 3339. Undefined if the object does not expire. */
  readonly expiresAt?: string | undefined;
  /** The re-authentication that the object requires, as part of a sentence. Present only for access policies. */
  readonly reauthentication?: string;
  /** Returns true if the object applies to a subject. */
  appliesTo(subject: AccessSubject): boolean;
}

/** A pattern of an object that authorizes logins. */
export interface DecidingPattern {
  readonly field: "username" | "sourceIp" | "filter.hostname";
  readonly subject: Subject;
  readonly pattern: string;
}

/** The numbers of subjects, and of rules or policies, with the field names that reports use. */
export interface DecidingCounts {
  readonly keys?: number;
  readonly rules?: number;
  readonly principals?: number;
  readonly policies?: number;
}

/** The login names and addresses that occur in the objects that authorize logins. */
export interface MentionedLogins {
  readonly logins: readonly string[];
  readonly loginPatterns: readonly string[];
  readonly addressPatterns: readonly string[];
  /** Addresses and networks. */
  readonly networks: readonly string[];
}

/** A login of a subject. */
export interface SingleLogin {
  readonly login: string;
  readonly address: string;
  /** Uid of the device. */
  readonly uid: string;
  readonly at: Date;
}

/** The decision about one login. */
export interface Decision {
  /** The reason for the denial; undefined if the login is allowed. */
  readonly deniedBy: DenyingPart | IdentityExplanation["deniedBy"];
  /** The firewall rule that allows or denies the login; null if no rule does. */
  readonly rule: AccessRule | null;
  /** The access policy that denies the login; null if no policy denies it. */
  readonly policy: AccessPolicy | null;
}

/** The reason for a decision. Within one {@link Access}, equal reasons are the same object. */
export interface Reason {
  readonly outcome: "allow" | "reauthentication" | "deny";
  /** The firewall rule that allows or denies the login. Null in identity mode, and if no rule matches. */
  readonly rule: AccessRule | null;
  /**
   * The access policy that allows or denies the login. If several policies apply, this is the first of them. Null in
   * legacy mode.
   */
  readonly policy: AccessPolicy | null;
  /**
   * The time from which the login is denied, because the rules that allow it have expired and a different rule denies
   * it.
   */
  readonly until?: string | undefined;
}

/** A group of devices on which the decision has the same reason, for logins with one login name from one address. */
export interface Share {
  readonly reason: Reason;
  readonly devices: DeviceSet;
}

/** The decisions about logins with one login name from one address, for all devices. */
export interface Verdict {
  /**
   * The devices, grouped by the reason. In legacy mode, the groups are ordered from the strongest rule to the weakest,
   * and the last group contains the devices on which no rule matches. In identity mode, deny policies come first, and
   * devices to which no policy applies are in no group.
   */
  readonly shares: readonly Share[];
  /** The devices on which the logins are allowed, with or without a re-authentication. */
  readonly open: DeviceSet;
  /** The devices on which the logins are allowed after a re-authentication. */
  readonly held: DeviceSet;
  /** The shares on which the logins end when a rule expires. */
  readonly endings: readonly Share[];
}

/** A set of rules. Each rule is represented by its index in {@link Access.rules}. */
export type RuleSet = TypedFastBitSet;

/** The logins and devices for which a policy is evaluated. */
export interface Evaluation {
  readonly evaluated: EvaluatedLogins;
  /** Uids of the devices. A {@link DeviceSet} contains indexes of this list. */
  readonly uids: readonly string[];
  /** The time of the logins. Keys, rules and memberships may have expired at this time. */
  readonly time: Date;
}

/**
 * A policy's decisions about all evaluated login names and addresses, as sets of devices. `explain` and
 * `explainIdentity` make the same decisions for a single login. In identity mode, every re-authentication is treated as
 * outdated.
 */
export abstract class Access<S extends AccessSubject = AccessSubject> implements Evaluation {
  readonly policy: NamespacePolicy;
  readonly decider: Decider<S>;
  readonly evaluated: EvaluatedLogins;
  readonly uids: readonly string[];
  readonly time: Date;
  /** The device sets of the policy. */
  protected readonly sets: DeviceSets;
  /**
   * The public keys that can be used for logins. The service accepts their type, they have not expired, and their owner
   * (if any) is a member. Empty in identity mode.
   */
  abstract readonly keys: readonly AccessKey[];
  /** The rules in force, strongest first. A {@link RuleSet} contains indexes of this list. Empty in identity mode. */
  abstract readonly rules: readonly AccessRule[];
  /**
   * The objects in force that authorize logins. In legacy mode, {@link keys} and {@link rules}. In identity mode, the
   * access policies.
   */
  abstract readonly objects: readonly DecidingObject[];

  constructor(decider: Decider<S>, policy: NamespacePolicy, { evaluated, uids, time }: Evaluation) {
    this.policy = policy;
    this.decider = decider;
    this.evaluated = evaluated;
    this.uids = uids;
    this.time = time;
    this.sets = new DeviceSets(policy.devices, new Map(uids.map((uid, place) => [uid, place])));
  }

  /**
   * Returns an object that identifies a group of subjects with the same verdicts. All public keys are in the same
   * group, since the firewall's verdicts do not depend on the key.
   */
  abstract groupOf(subject: S | undefined): object;

  /**
   * Returns the outcome of a subject's login.
   * @param outcome the decision of the rules or policies
   */
  abstract outcomeOf(outcome: Reason["outcome"], subject: S): Outcome;

  /**
   * Returns the time from which a subject has no access, regardless of the rules. For a key, this is the expiry time of
   * the key or of its owner's membership. For a principal, it is the expiry time of the SSH key that expires last.
   * Undefined if the access does not expire, or if the expiry time is not known.
   */
  abstract endOf(subject: S): string | undefined;

  /**
   * Returns the reason why a key cannot be used for any login. Undefined if the key can be used. Also undefined for a
   * principal.
   */
  abstract lapseOf(subject: S): KeyLapse | undefined;

  /**
   * Returns the devices on which a subject allows a login name, regardless of the rules or policies. For a key, returns
   * undefined if the key does not allow the login name, has a refused type, has expired, or belongs to a user who is
   * not a member. For a principal, returns every device, or undefined if the principal has no SSH key and cannot
   * confirm one.
   */
  abstract admitted(subject: S, login: string): DeviceSet | undefined;

  /**
   * Returns the rules whose pattern matches a login name. Returns the same object for login names that match the same
   * rules.
   */
  abstract rulesForLogin(login: string): RuleSet;

  /**
   * Returns the rules whose pattern matches an address. Returns the same object for addresses that match the same
   * rules.
   */
  abstract rulesForAddress(address: string): RuleSet;

  /**
   * Returns the decisions about logins with a login name from an address. Returns the same object for logins that match
   * the same rules.
   * @param subject the principal, in identity mode; the decisions of the firewall are the same for all keys
   */
  abstract verdict(login: string, address: string, subject?: S): Verdict;

  /** The public keys, or the principals in identity mode. */
  get subjects(): readonly S[] {
    return this.decider.subjects;
  }

  /**
   * Returns the devices that a filter matches.
   * @param broken the result for an invalid pattern: true for every device, false for no device
   */
  devicesOf(filter: DeviceFilter, broken: boolean): DeviceSet {
    return this.sets.of(filter, broken);
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
