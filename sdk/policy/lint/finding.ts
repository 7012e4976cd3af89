import type { LintCode, Severity } from "./lintRules.ts";

/** What a finding is about. */
export interface FindingObject {
  readonly kind: "key" | "rule" | "apiKey" | "invitation" | "policy";
  /** A key's fingerprint, a rule's id, an API key's name, an invited user's e-mail address. */
  readonly id: string;
  /** What people call it; rules have no name but their id. */
  readonly name: string;
}

/** A login in which a finding shows; what makes no difference is left out. */
export interface Counterexample {
  readonly login?: string;
  readonly address?: string;
  /** A device's name. */
  readonly device?: string;
}

/** Why there is a finding. */
export interface Evidence {
  readonly counterexample?: Counterexample;
  /** Ids of other rules that the finding is about. */
  readonly rules?: readonly string[];
  /** Tags that no device has. */
  readonly tags?: readonly string[];
  /** When the object expires, RFC 3339. */
  readonly expiresAt?: string;
}

/** Something about a policy that somebody should look at. */
export interface Finding {
  readonly rule: LintCode;
  readonly severity: Severity;
  /** One sentence that names object, field and value. */
  readonly message: string;
  readonly object: FindingObject;
  readonly field?: Field;
  /** One sentence: how to mend it. */
  readonly suggestion?: string;
  readonly evidence?: Evidence;
}

/** The field of an object that a finding is about. */
export type Field =
  | "username"
  | "sourceIp"
  | "filter"
  | "filter.hostname"
  | "filter.tags"
  | "priority"
  | "expiresAt";
