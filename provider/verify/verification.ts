import type { TrailNote } from "../service/auditTrail.ts";

/** A login that the service allowed, but that the policy refuses. */
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
    /** Name of the key. Null if the namespace does not contain the key. */
    readonly name: string | null;
  } | null;
  /** The user or service account that logged in. Null in legacy mode, or if the session contains neither of them. */
  readonly user: {
    readonly id: string;
    /**
     * E-mail address of the user, or name of the service account. Null if the user or service account is not a member.
     */
    readonly name: string | null;
  } | null;
  /** The reason why the policy refuses the login, as part of a sentence. */
  readonly reason: string;
}

/** The numbers of compared sessions, by the data that the comparison used. */
export interface ComparedSessions {
  readonly total: number;
  /** Number of sessions with a key. The public key must allow the login, and the firewall must allow it. */
  readonly byKey: number;
  /** Number of sessions with a user or service account. Access policies must allow the login of this principal. */
  readonly byUser: number;
  /**
   * Number of sessions without a key. Either a password authenticated the login, or an SSH gateway that does not belong
   * to the service stored the session. The firewall must allow the login.
   */
  readonly byFirewall: number;
  /**
   * Number of sessions for which the server stored neither a key nor a user. At least one key or principal must be able
   * to log in. The comparison cannot detect that a different key or user logged in.
   */
  readonly weakly: number;
}

/**
 * The output of `gatehouse verify --json`: a comparison of the logins that the service allowed with the policy of the
 * namespace.
 */
export interface Verification {
  readonly version: 1;
  /** URL of the service. */
  readonly service: string;
  /** Id of the namespace. */
  readonly namespace: string;
  /** Name of the namespace. If the credential may not read the name, the id of the namespace. */
  readonly name: string;
  /** Start of the compared period, in RFC 3339. Sessions that started earlier are not compared. */
  readonly since: string;
  /** The time at which the command read the policy, in RFC 3339. */
  readonly until: string;
  /** The last change to the policy in the audit trail. Null if it is not known. */
  readonly lastChange: TrailNote | null;
  readonly compared: ComparedSessions;
  /** The number of sessions that were not compared because their login did not succeed. */
  readonly unauthenticated: number;
  /** The logins that the service allowed but the policy refuses, latest first. */
  readonly differences: readonly LoginDifference[];
  /**
   * Notes on the sessions, the parts of the namespace and the other namespaces of the stack that were not compared, as
   * sentences.
   */
  readonly notEvaluated: readonly string[];
  /** Notes on the compared period, and on facts about the namespace that are not known, as sentences. */
  readonly notes: readonly string[];
}
