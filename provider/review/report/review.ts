import type { Role } from "@gatehouse-access/sdk/contract";
import type { Finding } from "@gatehouse-access/sdk/policy";
import type { EngineName, ShownStep, Summary } from "../../engine/index.ts";
import type { Incapability } from "../guards/capabilities.ts";
import type { Lockout } from "../guards/lockouts.ts";
import type { Twins } from "../planned/plannedEstate.ts";
import type { PolicyTestResult } from "../policyTests/policyTests.ts";
import type { AccessLine } from "./accessLines.ts";

/** A line of the access that changes, with its devices put into words. */
export interface ReviewedAccess extends AccessLine {
  /** "14 devices tagged prod". */
  readonly where: string;
}

/** A member who comes, goes, or gets another role. */
export interface MemberChange {
  readonly change: "added" | "removed" | "role";
  readonly email: string;
  readonly from?: Role;
  readonly to?: Role;
}

/** An object of the namespace. */
export interface EstateObject {
  readonly kind: "PublicKey" | "FirewallRule" | "Member" | "ApiKey";
  readonly id: string;
  readonly name: string;
}

/** How much of a namespace the program declares. */
export interface Coverage {
  readonly managed: number;
  readonly total: number;
  /** Rounded down; 100 for a namespace without objects. */
  readonly percent: number;
  readonly unmanaged: readonly EstateObject[];
}

/** A finding of the lint, and whether the change brings it. */
export interface ReviewedFinding extends Finding {
  readonly isNew: boolean;
}

/** What the change means for one namespace. */
export interface NamespaceReview {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Its id where the credential may not read its name. */
  readonly name: string;
  /** What access was evaluated for. */
  readonly domain: {
    readonly devices: number;
    readonly keys: number;
    readonly rules: number;
    /** Latest sessions whose logins and addresses are among those below. */
    readonly sessions: number;
    readonly logins: readonly string[];
    readonly addresses: readonly string[];
  };
  /** Losses first. */
  readonly access: readonly ReviewedAccess[];
  readonly members: readonly MemberChange[];
  readonly lockouts: readonly Lockout[];
  /** What the credential may not do, each operation once. */
  readonly incapabilities: readonly Incapability[];
  /** Findings after the change, older ones too. */
  readonly lint: readonly ReviewedFinding[];
  readonly coverage: Coverage;
  /** Of the stack's own namespace. */
  readonly tests: readonly PolicyTestResult[];
  /** What the review could not know, as sentences. */
  readonly unknown: readonly string[];
}

/** A revision of the program. */
export interface Revision {
  /** As it was given: a branch, a tag, a commit; "the working folder". */
  readonly name: string;
  /** Id of the commit; null for the working folder, whatever is committed of it. */
  readonly commit: string | null;
}

/** The revisions that a review compares. */
export interface Revisions {
  readonly base: Revision;
  readonly head: Revision;
}

/** What a change means, before it is made. */
export interface Review {
  /** Raised by a change that breaks what reads it (docs/review-json.md). */
  readonly version: 1;
  readonly project: string;
  readonly stack: string;
  readonly engine: EngineName;
  /** Address of the service. */
  readonly service: string;
  /** Set where two revisions of the program are compared; left out where the program is compared with what is live. */
  readonly revisions?: Revisions;
  readonly summary: Summary;
  /** Resources that change, as the plan has them; of two revisions, from the one to the other. */
  readonly changes: readonly ShownStep[];
  /** The stack's own, and every other one that the plan is about. */
  readonly namespaces: readonly NamespaceReview[];
  /** Objects that are declared twice. */
  readonly twins: readonly Twins[];
  /** What the review could not know beside what it could not of each namespace, as sentences. */
  readonly unknown: readonly string[];
}

/** Why a change should not be made, as sentences; empty when nothing stands against it. */
export function objections(review: Review, { allowLockout }: { readonly allowLockout: boolean }): string[] {
  const ofNamespaces = review.namespaces.flatMap(({ name, lockouts, incapabilities, tests }) => [
    ...(allowLockout
      ? []
      : lockouts.map(({ message }) => `${name}: ${message} (--allow-lockout permits it)`)),
    ...incapabilities.map(
      ({ reason, resources }) => `${name}: ${reason}; needed by ${resources.slice(0, 5).join(", ")}`,
    ),
    ...tests.filter(({ ok }) => !ok).map((test) => `${name}: the policy test "${test.name}" fails`),
  ]);
  return [
    ...review.twins.map(({ object, urns }) => `${object} is declared twice: ${urns.join(" and ")}`),
    ...ofNamespaces,
  ];
}
