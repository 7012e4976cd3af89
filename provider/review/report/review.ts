import type { Role } from "@gatehouse-access/sdk/contract";
import type { AccessChange, AccessMode, Finding, Outcome, Principal } from "@gatehouse-access/sdk/policy";
import type { Runner, ShownStep, Summary } from "../../engine/index.ts";
import type { UnmanagedObject } from "../../estate/coverage.ts";
import type { DuplicateDeclarations } from "../../plan/planned/conflicts.ts";
import type { DeclaredEnd } from "../../plan/planned/plannedEstate.ts";
import type { PolicyTestResult } from "../../policyTests/results.ts";
import type { SettingChange } from "../../resources/namespace.ts";
import type { Lockout } from "../guards/lockouts.ts";
import type { MissingPermission } from "../guards/planProblems.ts";

/** A user or service account in a report. */
export type ReviewedPrincipal = Pick<Principal, "id" | "name" | "kind">;

/** Access that one or more keys or principals gain or lose, or whose condition or end changes. */
export interface ReviewedAccess {
  /** `altered`: the access remains, but its end changes, or its condition, such as a re-authentication. */
  readonly change: AccessChange["change"];
  /** The public keys; empty in identity mode. */
  readonly keys: readonly { readonly fingerprint: string; readonly name: string }[];
  /**
   * The users and service accounts; only in identity mode. If the line also contains public keys, entries with the same
   * index have the same SSH key.
   */
  readonly principals?: readonly ReviewedPrincipal[];
  /** The access mode of the namespace after the change. Omitted if the mode stays. */
  readonly newMode?: AccessMode;
  /** The outcome of the logins before the change; only in identity mode. */
  readonly before?: Outcome;
  /** The outcome of the logins after the change; only in identity mode. */
  readonly after?: Outcome;
  /**
   * The time when the gained or prolonged access starts, in RFC 3339: the end of a rule that denies. Omitted if the
   * access starts with the change.
   */
  readonly starts?: string;
  /** The time when the access ends after the change, in RFC 3339; null if it does not end, and for a loss. */
  readonly until: string | null;
  /** The time when the access ended before the change; null if it did not end, and for a gain. */
  readonly untilBefore: string | null;
  readonly logins: readonly string[];
  /** True if `logins` contains all evaluated login names. */
  readonly anyLogin: boolean;
  readonly addresses: readonly string[];
  /** True if `addresses` contains all evaluated addresses. */
  readonly anyAddress: boolean;
  /** The address that represents all other addresses. Default: 192.0.2.1. An empty text if there are none. */
  readonly otherAddress?: string;
  /** Uids of the devices. */
  readonly devices: readonly string[];
  /** Description of the devices: "14 devices tagged prod". */
  readonly where: string;
}

/** A member who is added, is removed, or gets another role or another end of the membership. */
export interface MemberChange {
  readonly change: "added" | "removed" | "role" | "end";
  readonly email: string;
  /** Role before the change; omitted for a new member. Servers since 0.27 also have the role `service`. */
  readonly from?: Role | "service";
  /** Role after the change; omitted for a removed member. */
  readonly to?: Role | "service";
  /** The time when the membership ends after the change; null if it does not end. Omitted if the end does not change. */
  readonly until?: string | null;
  /** The time when the membership ended before the change; null if it did not end. Omitted as `until`. */
  readonly untilBefore?: string | null;
  /** Names of the member's public keys, which the service refuses. Omitted unless the change ends the membership. */
  readonly refusedKeys?: readonly string[];
}

/** The tokens that a trusted workload accepts. */
export interface AcceptedTokens {
  readonly issuer: string;
  readonly audience: string;
  /** The required claims by name. */
  readonly claims: Readonly<Record<string, string>>;
  readonly maxSessionMinutes: number;
  readonly singleUse: boolean;
}

/** A trusted workload that is added, is removed, or gets another role or other conditions. */
export interface WorkloadChange {
  readonly change: "added" | "removed" | "altered";
  readonly name: string;
  /** Role before the change; omitted for a new workload. */
  readonly from?: Role;
  /** Role after the change; omitted for a removed workload. */
  readonly to?: Role;
  /** The tokens that the workload accepts after the change; omitted for a removed workload. */
  readonly accepts?: AcceptedTokens;
  /** The tokens that the workload accepted before the change; omitted if they are the same. */
  readonly acceptedBefore?: AcceptedTokens;
}

/** An API key that is added, removed, replaced, or gets another role. */
export interface ApiKeyChange {
  /** `replaced`: another key with this name takes the place of the key, which may keep working for an overlap. */
  readonly change: "added" | "removed" | "replaced" | "role";
  readonly name: string;
  /** Role before the change; omitted for a new key. */
  readonly from?: Role;
  /** Role after the change; omitted for a removed key. */
  readonly to?: Role;
  /** The end of a new key, in RFC 3339; null if it does not end. Omitted for a removed key and a changed role. */
  readonly until?: string | null;
  /** The end of a replaced key, as `until`. */
  readonly untilBefore?: string | null;
  /** True if the new key is valid for a longer time than the replaced key. */
  readonly isLonger?: boolean;
}

/** A privilege beside logins and roles, such as the enrollment of devices, that an object gives or no longer gives. */
export interface OtherPrivilege {
  readonly change: "gained" | "lost" | "altered";
  readonly kind: string;
  /** Name of the resource. */
  readonly resource: string;
  /** The privilege after the change, or before it if it is lost, without a subject: `enrolls devices in the namespace`. */
  readonly privilege: string;
}

/** An object of a namespace. */
export interface EstateObject {
  readonly kind:
    | "PublicKey"
    | "FirewallRule"
    | "AccessPolicy"
    | "ServiceAccount"
    | "Member"
    | "ApiKey"
    | "TrustedWorkload";
  readonly id: string;
  readonly name: string;
}

/** An unmanaged object. */
export interface UndeclaredObject extends EstateObject, Pick<UnmanagedObject, "declaredEarlier"> {
  /** Access that the object gives after the change, as sentences; empty if the object gives no access. */
  readonly widens: readonly string[];
  /** The exception for the object in access.ignore; omitted if there is no exception, or if the exception has ended. */
  readonly exception?: { readonly until: string; readonly reason: string };
}

/** Coverage of a namespace by the reviewed program and by the stacks of `--with-stack`. */
export interface Coverage {
  /** Number of objects that the reviewed program and the stacks of `--with-stack` declare. */
  readonly managed: number;
  /** Number of objects in the namespace that a program can declare. */
  readonly total: number;
  /** Share of declared objects in percent, rounded down; 100 for a namespace without objects. */
  readonly percent: number;
  /** The unmanaged objects. */
  readonly unmanaged: readonly UndeclaredObject[];
}

/** A lint finding. */
export interface ReviewedFinding extends Finding {
  /** True if the change causes the finding. */
  readonly isNew: boolean;
}

/** The effect of the change on one namespace. */
export interface NamespaceReview {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Name of the namespace; its id if the credential may not read the name. */
  readonly name: string;
  /** The devices, keys, rules, logins and addresses for which access was evaluated. */
  readonly evaluated: {
    /** Number of devices. */
    readonly devices: number;
    /** Number of keys. */
    readonly keys: number;
    /** Number of firewall rules. */
    readonly rules: number;
    /** Number of users and service accounts; only in identity mode. */
    readonly principals?: number;
    /** Number of access policies; only in identity mode. */
    readonly policies?: number;
    /** Number of recent sessions whose login names and addresses were evaluated. */
    readonly sessions: number;
    readonly logins: readonly string[];
    readonly addresses: readonly string[];
    /** The address that represents all other addresses. Default: 192.0.2.1. An empty text if there are none. */
    readonly otherAddress?: string;
  };
  /** Access changes, losses first; null if the access is not known. `notEvaluated` then contains the reason. */
  readonly access: readonly ReviewedAccess[] | null;
  readonly members: readonly MemberChange[];
  readonly workloads: readonly WorkloadChange[];
  readonly apiKeys: readonly ApiKeyChange[];
  /** Changed settings of the namespace, with the values before and after the change. */
  readonly settings: readonly SettingChange[];
  /** Privileges beside logins and roles that change. */
  readonly privileges: readonly OtherPrivilege[];
  /** Declared objects whose access ends within `--expires-within` days, sorted by end. */
  readonly ending: { readonly withinDays: number; readonly objects: readonly DeclaredEnd[] };
  readonly lockouts: readonly Lockout[];
  /** Missing permissions of the credential, each operation once. */
  readonly missingPermissions: readonly MissingPermission[];
  /** Lint findings after the change, including findings that existed before the change. */
  readonly lint: readonly ReviewedFinding[];
  readonly coverage: Coverage;
  /** Results of the policy tests; empty for namespaces that the tests do not check. */
  readonly tests: readonly PolicyTestResult[];
  /** Objects, lists and steps that could not be evaluated, as sentences. They block the change. */
  readonly notEvaluated: readonly string[];
  /** Other facts that could not be determined, as sentences. Such facts do not block the change. */
  readonly unknown: readonly string[];
}

/** The policy tests of a namespace that the plan does not contain. */
export interface TestedElsewhere {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Name of the namespace; its id if the credential may not read the name. */
  readonly name: string;
  readonly tests: readonly PolicyTestResult[];
}

/** A revision of the program. */
export interface Revision {
  /** The given name of a branch, tag or commit, or "the working folder". */
  readonly name: string;
  /** Id of the commit; null for the working folder, which may contain uncommitted changes. */
  readonly commit: string | null;
}

/** The revisions that a review compares. */
export interface Revisions {
  readonly base: Revision;
  readonly head: Revision;
}

/** Output of `gatehouse review --json`: the effect of a change before it is applied. */
export interface Review {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  readonly project: string;
  readonly stack: string;
  readonly engine: Runner;
  /** Address of the service. */
  readonly service: string;
  /** The compared revisions; omitted if the program is compared with the live namespace. */
  readonly revisions?: Revisions;
  readonly summary: Summary;
  /** Resources that the plan changes. For a review of two revisions: the differences between the revisions. */
  readonly changes: readonly ShownStep[];
  /** The stack's own namespace, and all other namespaces of the plan. */
  readonly namespaces: readonly NamespaceReview[];
  /** Policy tests of other namespaces that tests name, in their current state; omitted if there are none. */
  readonly testedElsewhere?: readonly TestedElsewhere[];
  /**
   * The number of namespaces that the plan creates, and of other resources in these namespaces. The review does not
   * evaluate them; `unknown` lists them.
   */
  readonly newNamespaces: { readonly namespaces: number; readonly resources: number };
  /** Duplicate declarations of objects. */
  readonly duplicateDeclarations: readonly DuplicateDeclarations[];
  /** Parts of the plan that the service would reject, as sentences. */
  readonly preflightFailures: readonly string[];
  /** Parts outside of `namespaces` that could not be evaluated, as sentences. Such parts block the change. */
  readonly notEvaluated: readonly string[];
  /**
   * Other facts outside of `namespaces` that could not be determined, as sentences. Such facts do not block the change.
   */
  readonly unknown: readonly string[];
}
