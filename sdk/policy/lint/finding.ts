import type { LintCode, Severity } from "./lintRules.ts";

/** What a finding is about. */
export interface FindingObject {
  readonly kind: "key" | "rule" | "apiKey" | "invitation" | "policy";
  /** A key's fingerprint, a rule's id, an API key's name, an invited user's e-mail address. */
  readonly id: string;
  /** What people call it; rules have no name but their id. */
  readonly name: string;
}

/** Where a finding can be seen; what makes no difference is left out. */
export interface Counterexample {
  readonly login?: string;
  readonly address?: string;
  /** A device's name. */
  readonly device?: string;
}

/** What a finding rests on. */
export interface Evidence {
  readonly counterexample?: Counterexample;
  /** Ids of the other rules that it is about. */
  readonly rules?: readonly string[];
  /** Tags that no device has. */
  readonly tags?: readonly string[];
  /** When it ends, RFC 3339. */
  readonly expiresAt?: string;
}

/** One thing about a policy that somebody should look at. */
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

/** What of an object a finding is about. */
export type Field =
  | "username"
  | "sourceIp"
  | "filter"
  | "filter.hostname"
  | "filter.tags"
  | "priority"
  | "expiresAt";
