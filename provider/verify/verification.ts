import type { TrailNote } from "../service/auditTrail.ts";

/** A login that the service admitted, and that the policy refuses. */
export interface LoginDifference {
  /** Uid of the session. */
  readonly session: string;
  /** Start of the session, in RFC 3339. */
  readonly startedAt: string;
  readonly login: string;
  /** Address of the client. */
  readonly address: string;
  readonly device: { readonly uid: string; readonly name: string };
  /** The public key that authenticated the login; null if the session contains no key. */
  readonly key: {
    readonly fingerprint: string;
    /** Null if the namespace does not have the key. */
    readonly name: string | null;
  } | null;
  /** The user or service account that logged in; null if the session contains none, or public keys decide. */
  readonly user: {
    readonly id: string;
    /** E-mail address of the user, or name of the service account; null if it is not a member. */
    readonly name: string | null;
  } | null;
  /** The reason why the policy refuses the login, as part of a sentence. */
  readonly reason: string;
}

/** The number of sessions that were compared, by the data that the comparison used. */
export interface ComparedSessions {
  readonly total: number;
  /** The public key of the session must admit the login, and the firewall must allow it. */
  readonly byKey: number;
  /** Access policies must allow the login of the user or service account of the session. */
  readonly byUser: number;
  /**
   * The session contains no key, because a password authenticated the login, or because another SSH gateway than that of
   * the service stored the session. The firewall must allow the login.
   */
  readonly byFirewall: number;
  /**
   * The server stores neither the key nor the user. At least one key or principal must be able to log in. A login with
   * another key or by another user is not noticed.
   */
  readonly weakly: number;
}

/**
 * The comparison of the logins that the service admitted with the policy of the namespace, as `gatehouse verify --json`
 * prints it.
 */
export interface Verification {
  readonly version: 1;
  /** URL of the service. */
  readonly service: string;
  /** Id of the namespace. */
  readonly namespace: string;
  /** Name of the namespace; its id if the credential may not read the name. */
  readonly name: string;
  /** Sessions that began before this time are not compared. RFC 3339. */
  readonly since: string;
  /** The time at which the command read the policy, in RFC 3339. */
  readonly until: string;
  /** The last change of the policy in the audit trail; null if it is not known. */
  readonly lastChange: TrailNote | null;
  readonly compared: ComparedSessions;
  /** The number of sessions that were not compared because their login did not succeed. */
  readonly unauthenticated: number;
  /** The logins that the service admitted and the policy refuses, latest first. */
  readonly differences: readonly LoginDifference[];
  /** The sessions, the parts of the namespace and the other namespaces of the stack that were not compared, as sentences. */
  readonly notEvaluated: readonly string[];
  /** Remarks about the compared period, and facts about the namespace that are not known, as sentences. */
  readonly notes: readonly string[];
}
