import type { Role } from "@gatehouse-access/sdk/contract";
import type { AccessChange, Finding } from "@gatehouse-access/sdk/policy";
import type { Runner, ShownStep, Summary } from "../../engine/index.ts";
import type { DuplicateDeclarations } from "../../plan/planned/conflicts.ts";
import type { PolicyTestResult } from "../../policyTests/results.ts";
import type { Lockout } from "../guards/lockouts.ts";
import type { Incapability } from "../guards/planProblems.ts";

/** Access that one or more keys gain or lose: one sentence of the review. */
export interface ReviewedAccess {
  readonly change: AccessChange["change"];
  readonly keys: readonly { readonly fingerprint: string; readonly name: string }[];
  readonly logins: readonly string[];
  /** True when the login names are all that were looked at. */
  readonly anyLogin: boolean;
  readonly addresses: readonly string[];
  /** True when the addresses are all that were looked at. */
  readonly anyAddress: boolean;
  /** Uids. */
  readonly devices: readonly string[];
  /** The devices in words: "14 devices tagged prod". */
  readonly where: string;
}

/** A member who comes, goes, or gets another role. */
export interface MemberChange {
  readonly change: "added" | "removed" | "role";
  readonly email: string;
  /** Left out for a new member. */
  readonly from?: Role;
  /** Left out for a member who goes. */
  readonly to?: Role;
}

/** An object of the namespace. */
export interface EstateObject {
  readonly kind: "PublicKey" | "FirewallRule" | "Member" | "ApiKey";
  readonly id: string;
  readonly name: string;
}

/** An object that no program declares. */
export interface UndeclaredObject extends EstateObject {
  /** What it lets people reach once the change is made, as sentences; empty where it widens no access. */
  readonly widens: readonly string[];
  /** What access.ignore says of it; left out where it says nothing that still holds. */
  readonly exception?: { readonly until: string; readonly reason: string };
}

/** How much of a namespace programs declare: the reviewed one, and those of the stacks that are named beside it. */
export interface Coverage {
  /** How many objects they declare. */
  readonly managed: number;
  /** How many objects the namespace has that a program can declare. */
  readonly total: number;
  /** Rounded down; 100 for a namespace without objects. */
  readonly percent: number;
  /** The objects that none of them declares. */
  readonly unmanaged: readonly UndeclaredObject[];
}

/** A finding of the lint, and whether the change brings it. */
export interface ReviewedFinding extends Finding {
  readonly isNew: boolean;
}

/** What the change means for one namespace. */
export interface NamespaceReview {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Its name; its id where the credential may not read its name. */
  readonly name: string;
  /** What access was evaluated for. */
  readonly domain: {
    /** How many. */
    readonly devices: number;
    /** How many. */
    readonly keys: number;
    /** How many. */
    readonly rules: number;
    /** How many of the latest sessions were looked at for login names and addresses. */
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
  /** What the review could not look at, as sentences: it stands against the change. */
  readonly unseen: readonly string[];
  /** What else the review could not know, as sentences. */
  readonly unknown: readonly string[];
}

/** A revision of the program. */
export interface Revision {
  /** As it was given: a branch, a tag, a commit; "the working folder". */
  readonly name: string;
  /** Id of the commit; null for the working folder, which may have changes that are not committed. */
  readonly commit: string | null;
}

/** The revisions that a review compares. */
export interface Revisions {
  readonly base: Revision;
  readonly head: Revision;
}

/** What a change means, before it is made. */
export interface Review {
  /** Raised by a change of this format that breaks programs which read it (docs/review-json.md). */
  readonly version: 1;
  readonly project: string;
  readonly stack: string;
  readonly engine: Runner;
  /** Address of the service. */
  readonly service: string;
  /** Left out where the program is compared with the live namespace, and not with another revision. */
  readonly revisions?: Revisions;
  readonly summary: Summary;
  /** Resources that change, as the plan has them; of two revisions, from the one to the other. */
  readonly changes: readonly ShownStep[];
  /** The stack's own, and every other one that the plan is about. */
  readonly namespaces: readonly NamespaceReview[];
  /** Objects that are declared twice. */
  readonly twins: readonly DuplicateDeclarations[];
  /** What the service would refuse or could not do, as sentences. */
  readonly refused: readonly string[];
  /** What the review could not look at beside what `namespaces` say, as sentences: it stands against the change. */
  readonly unseen: readonly string[];
  /** What else the review could not know beside what `namespaces` say, as sentences. */
  readonly unknown: readonly string[];
}
