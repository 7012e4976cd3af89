import type { Finding } from "@gatehouse-access/sdk/policy";
import type { Runner, ShownStep, Summary } from "../../engine/index.ts";
import type { UnmanagedObject } from "../../namespace/coverage.ts";
import type { DuplicateDeclarations } from "../../plan/planned/conflicts.ts";
import type { DeclaredEnd } from "../../plan/planned/notes.ts";
import type { PolicyTestResult } from "../../policyTests/results.ts";
import type { PrivilegeChanges } from "../../privileges/privileges.ts";
import type { Lockout } from "../guards/lockouts.ts";
import type { MissingPermission } from "../guards/planProblems.ts";

/** An unmanaged object. */
export interface UndeclaredObject extends UnmanagedObject {
  /** Privileges that the object gives after the change, as sentences. Empty if the object gives no privileges. */
  readonly widens: readonly string[];
}

/**
 * Coverage of a namespace: the share of its objects that the reviewed program and the stacks of `--with-stack` declare.
 */
export interface Coverage {
  /** Number of objects that the reviewed program and the stacks of `--with-stack` declare. */
  readonly managed: number;
  /** Number of objects in the namespace that a program can declare. */
  readonly total: number;
  /** Percentage of declared objects, rounded down; 100 for a namespace without objects. */
  readonly percent: number;
  /** The unmanaged objects. */
  readonly unmanaged: readonly UndeclaredObject[];
}

/** A lint finding. */
export interface ReviewedFinding extends Finding {
  /** True if the change causes the finding. False if the finding already existed before the change. */
  readonly isNew: boolean;
}

/**
 * The effect of the change on one namespace. If the access is not known, `access` is null, and `notEvaluated` contains
 * the reason.
 */
export interface NamespaceReview extends PrivilegeChanges {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Name of the namespace. If the credential may not read the name, the id of the namespace. */
  readonly name: string;
  /** The devices, keys, rules, logins and addresses for which access was evaluated. */
  readonly evaluated: {
    /** Number of devices. */
    readonly devices: number;
    /** Number of keys. */
    readonly keys: number;
    /** Number of firewall rules. */
    readonly rules: number;
    /** Number of users and service accounts. Only set in identity mode. */
    readonly principals?: number;
    /** Number of access policies. Only set in identity mode. */
    readonly policies?: number;
    /** Number of recent sessions whose login names and addresses were evaluated. */
    readonly sessions: number;
    readonly logins: readonly string[];
    readonly addresses: readonly string[];
    /**
     * The address that represents all addresses that are not in `addresses`. Default: 192.0.2.1. An empty string if
     * there are no such addresses.
     */
    readonly otherAddress?: string;
  };
  /** Declared objects that expire within `--expires-within` days, sorted by expiry time. */
  readonly ending: { readonly withinDays: number; readonly objects: readonly DeclaredEnd[] };
  readonly lockouts: readonly Lockout[];
  /** Missing permissions of the credential. Each operation is listed once. */
  readonly missingPermissions: readonly MissingPermission[];
  /** Lint findings after the change, including the findings that existed before the change. */
  readonly lint: readonly ReviewedFinding[];
  readonly coverage: Coverage;
  /** Results of the policy tests. Empty for namespaces that no test checks. */
  readonly tests: readonly PolicyTestResult[];
  /** Sentences about objects, lists and steps that could not be evaluated. They block the change. */
  readonly notEvaluated: readonly string[];
  /** Sentences about other facts that could not be determined. They do not block the change. */
  readonly unknown: readonly string[];
}

/** The policy tests of a namespace that the plan does not contain. */
export interface TestedElsewhere {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Name of the namespace. If the credential may not read the name, the id of the namespace. */
  readonly name: string;
  readonly tests: readonly PolicyTestResult[];
}

/** A revision of the program. */
export interface Revision {
  /** The branch, tag or commit as given to the command, or "the working folder". */
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
  /**
   * The resources that the plan changes. In a review of two revisions, the resources that differ between the revisions.
   */
  readonly changes: readonly ShownStep[];
  /** The stack's own namespace, and all other namespaces of the plan. */
  readonly namespaces: readonly NamespaceReview[];
  /**
   * Results of the policy tests on the current state of namespaces that the plan does not contain; omitted if there are
   * none.
   */
  readonly testedElsewhere?: readonly TestedElsewhere[];
  /**
   * The number of namespaces that the plan creates, and the number of other resources in these namespaces. The review
   * does not evaluate these resources, but `unknown` lists them.
   */
  readonly newNamespaces: { readonly namespaces: number; readonly resources: number };
  /** Duplicate declarations of objects. */
  readonly duplicateDeclarations: readonly DuplicateDeclarations[];
  /** Sentences about parts of the plan that the service would reject. */
  readonly preflightFailures: readonly string[];
  /** Sentences about parts outside of `namespaces` that could not be evaluated. They block the change. */
  readonly notEvaluated: readonly string[];
  /**
   * Sentences about other facts outside of `namespaces` that could not be determined. They do not block the change.
   */
  readonly unknown: readonly string[];
}
