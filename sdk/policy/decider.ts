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

/** The access mode of a namespace: the kind of objects that authorize logins. */
export type AccessMode = "legacy" | "identity";

/**
 * Decides about the logins of a namespace by its policy. A policy has one of two deciders: public keys and firewall rules
 * (legacy mode), or access policies and their principals (identity mode). The decider contains everything that differs
 * between the modes, also the words of reports.
 */
export interface Decider<S extends AccessSubject = AccessSubject> {
  readonly mode: AccessMode;
  readonly nouns: DeciderNouns;
  /** The subjects whose access the policy decides. */
  readonly subjects: readonly S[];
  /** The access policies; empty in legacy mode. */
  readonly policies: readonly AccessPolicy[];
  /** All objects that decide, including those that are not in force. */
  readonly objects: readonly DecidingObject[];
  /** The numbers of subjects and of other deciding objects. */
  readonly counts: DecidingCounts;
  /** True if the policy denies every login, because the namespace has no object that allows one. */
  readonly deniesEverything: boolean;
  /** The reason for the denial of a login that no object decides, as part of a sentence. Undefined if it is allowed. */
  readonly defaultDenial: string | undefined;
  /** The expiry times of the objects on which the access depends, in RFC 3339. */
  readonly ends: readonly string[];
  /** Returns the login names and addresses that the objects contain. */
  mentioned(): MentionedLogins;
  /** Returns the policy without the subjects that do not pass a test. */
  withSubjects(isKept: (subject: Pick<SubjectFacts, "id" | "name">) => boolean): NamespacePolicy;
  /** Returns the decision about one login. @throws RangeError if the policy does not have the device or the subject */
  decide(subject: S, login: SingleLogin): Decision;
  /**
   * Returns a login name and a device that a subject admits, or the first ones if there are none. Returns undefined if the
   * policy has no device.
   * @param logins the login names to choose from
   */
  exampleFor(
    subject: S,
    logins: readonly string[],
  ): { readonly login: string; readonly device: AccessDevice } | undefined;
  /**
   * Returns the reason why a change of the policy changes the devices or logins that a subject admits, as a sentence
   * without a period.
   */
  changedAdmission(before: S, after: S): string;
  /** Prepares the decisions about all evaluated logins. */
  access(evaluation: Evaluation): Access<S>;
}

/** A noun in the singular and in the plural. */
export type Noun = readonly [one: string, several: string];

/** The nouns of an access mode. */
export interface DeciderNouns {
  /** A subject: `key`; `user or service account`. */
  readonly subject: Noun;
  /** A subject, in short: `key`; `principal`. */
  readonly subjectInShort: Noun;
  /** The flag, the field of a query, and the column that select or show subjects: `key`; `user`. */
  readonly selector: "key" | "user";
  /** An object that decides: `firewall rule`; `access policy`. */
  readonly object: Noun;
  /** An object that decides, in short: `rule`; `policy`. */
  readonly objectInShort: string;
  /** The texts that contain evaluated logins: `patterns`; `policies`. */
  readonly loginSources: string;
  /** The objects that decide, as the subject of a sentence: `public keys`; `access policies`. */
  readonly basis: string;
}

/** An object that authorizes logins: a public key, a firewall rule or an access policy. */
export interface DecidingObject {
  readonly kind: "key" | "rule" | "accessPolicy";
  /** The fingerprint of a key; otherwise the id. */
  readonly id: string;
  /** The name of a key or access policy; the id of a rule. */
  readonly name: string;
  /** The kind of the object in a sentence. */
  readonly noun: "key" | "rule" | "access policy";
  /** The properties after the name of the object: `allow, priority 7`. Undefined for a key. */
  readonly details: string | undefined;
  /** The effect on logins that match. A key only admits a login; then the firewall decides. */
  readonly effect: "admit" | "allow" | "deny";
  /** True if the object itself gives access. A rule that allows only limits other rules. */
  readonly givesAccess: boolean;
  readonly filter: DeviceFilter;
  /** The patterns, including empty patterns. */
  readonly patterns: readonly DecidingPattern[];
  /** The end of the object, in RFC 3339. Undefined if it does not end. */
  readonly expiresAt?: string | undefined;
  /** The re-authentication that the object demands, as part of a sentence; only for access policies. */
  readonly reauthentication?: string;
  /** Returns true if the object applies to a subject. */
  appliesTo(subject: AccessSubject): boolean;
}

/** A pattern of a deciding object. */
export interface DecidingPattern {
  readonly field: "username" | "sourceIp" | "filter.hostname";
  readonly subject: Subject;
  readonly pattern: string;
}

/** The numbers of subjects and of other deciding objects, by the names that reports use. */
export interface DecidingCounts {
  readonly keys?: number;
  readonly rules?: number;
  readonly principals?: number;
  readonly policies?: number;
}

/** The login names and addresses that deciding objects contain. */
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
  /** The cause of the denial; undefined if the login is allowed. */
  readonly deniedBy: DenyingPart | IdentityExplanation["deniedBy"];
  /** The firewall rule that decides; null if there is none. */
  readonly rule: AccessRule | null;
  /** The access policy that denies; null if there is none. */
  readonly policy: AccessPolicy | null;
}

/** The reason for a decision. Equal reasons of the same {@link Access} are the same object. */
export interface Reason {
  readonly outcome: "allow" | "reauthentication" | "deny";
  /** The firewall rule that decides the login. Null if no rule matches, so that the login is allowed. */
  readonly rule: AccessRule | null;
  /** The access policy that decides the login in identity mode: the first one of those that apply. */
  readonly policy: AccessPolicy | null;
  /** The time from which other rules deny the login, because the rules that allow it have expired. */
  readonly until?: string | undefined;
}

/** A group of devices on which logins with one login name from one address have the same reason. */
export interface Share {
  readonly reason: Reason;
  readonly devices: DeviceSet;
}

/** The decisions about logins with one login name from one address, for all devices. */
export interface Verdict {
  /**
   * The devices, grouped by the reason. Firewall: strongest rule first; the last group contains the devices on which no
   * rule matches. Access policies: those that deny first; devices to which no policy applies are in no group.
   */
  readonly shares: readonly Share[];
  /** The devices on which the logins are allowed, with or without a re-authentication. */
  readonly open: DeviceSet;
  /** The devices on which the logins are allowed after a re-authentication. */
  readonly held: DeviceSet;
  /** The shares whose logins an expiry of a rule ends. */
  readonly endings: readonly Share[];
}

/** A set of rules. Each rule is represented by its index in {@link Access.rules}. */
export type RuleSet = TypedFastBitSet;

/** The logins for which a policy is evaluated, and the list of devices. */
export interface Evaluation {
  readonly evaluated: EvaluatedLogins;
  /** Uids of the devices. A {@link DeviceSet} contains indexes of this list. */
  readonly uids: readonly string[];
  /** The time of the logins, at which keys, rules and memberships may have expired. */
  readonly time: Date;
}

/**
 * The decisions of a policy about all evaluated login names and addresses, as sets of devices. The decisions are the
 * same as those of `explain` and `explainIdentity`, which decide one login at a time. In identity mode, every
 * re-authentication is treated as outdated.
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
   * The public keys that may admit logins: their type is not refused, and they have not expired or lost their owner.
   * Empty in identity mode.
   */
  abstract readonly keys: readonly AccessKey[];
  /** The rules in force, strongest first. A {@link RuleSet} contains indexes of this list. Empty in identity mode. */
  abstract readonly rules: readonly AccessRule[];
  /** The objects that decide and are in force: {@link keys} and {@link rules}, or the access policies. */
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
   * Returns an object that is the same for subjects with the same verdicts. All public keys have the same verdicts: the
   * firewall's.
   */
  abstract groupOf(subject: S | undefined): object;

  /**
   * Returns the outcome of a subject's login.
   * @param outcome the decision of the rules or policies
   */
  abstract outcomeOf(outcome: Reason["outcome"], subject: S): Outcome;

  /**
   * Returns the time from which a subject has no access, regardless of the rules: the expiry of the key or of its
   * owner's membership, or the expiry of the last SSH key of a principal. Undefined if no time is known.
   */
  abstract endOf(subject: S): string | undefined;

  /** Returns the reason why a key admits no login; undefined if it may admit logins, and for a principal. */
  abstract lapseOf(subject: S): KeyLapse | undefined;

  /**
   * Returns the devices on which a key admits a login name, regardless of the firewall. Returns undefined if the key
   * does not admit the login name, has a refused type, has expired, or belongs to a user who is not a member. A principal
   * is admitted to every device, unless the principal has no SSH key and cannot confirm one.
   */
  abstract admitted(subject: S, login: string): DeviceSet | undefined;

  /**
   * Returns the rules whose pattern matches a login name. For login names that the same rules match, it returns the
   * same object.
   */
  abstract rulesForLogin(login: string): RuleSet;

  /**
   * Returns the rules whose pattern matches an address. For addresses that the same rules match, it returns the same
   * object.
   */
  abstract rulesForAddress(address: string): RuleSet;

  /**
   * Returns the decisions about a login name from an address. For logins that the same rules match, it returns the same
   * object.
   * @param subject the principal, in identity mode; the decisions of the firewall are the same for all keys
   */
  abstract verdict(login: string, address: string, subject?: S): Verdict;

  /** The public keys, or the principals in identity mode. */
  get subjects(): readonly S[] {
    return this.decider.subjects;
  }

  /**
   * Returns the devices that a filter matches.
   * @param broken whether a pattern that does not compile matches every device (true) or none (false)
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
