import type { FieldChange, Result, ShownStep } from "../engine/index.ts";
import type { UnmanagedObject } from "../estate/coverage.ts";
import type { Format } from "../import/model.ts";
import type { MemberChange, ReviewedAccess } from "../review/report/review.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import type { DeclaringResource, TrailNote } from "./whoChanged.ts";

/** What is known of how a difference came about. */
export interface Known {
  /** The resource that declared it last, as the service was told; left out where it was not. */
  readonly declaredBy?: DeclaringResource;
  /** The latest entry of the service's audit trail about the object; left out where there is none. */
  readonly by?: TrailNote;
  /** Where the service has no audit trail: when a run of drift first found it, RFC 3339 in UTC. */
  readonly firstSeen?: string;
  /** What it means for who can reach what, as sentences; empty where nothing follows. */
  readonly meaning: readonly string[];
}

/** A resource whose object somebody changed or deleted. */
export interface DriftedResource extends ShownStep, Known {
  readonly op: "update" | "delete";
}

/** An object that no program declares. */
export interface FoundObject extends UnmanagedObject, Known {
  /** Id of its namespace. */
  readonly tenant: string;
}

/** What drift meant in one namespace. */
export interface DriftedNamespace {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Its name; its id where the credential may not read its name. */
  readonly name: string;
  /** Who can reach what beside, or not, what the program declares. */
  readonly access: readonly ReviewedAccess[];
  /** Members beside, or not, those that the program declares. */
  readonly members: readonly MemberChange[];
}

/** An API key that has expired, or will soon. */
export interface ExpiringKey {
  /** Id of its namespace. */
  readonly tenant: string;
  readonly name: string;
  /** RFC 3339 in UTC. */
  readonly expiresAt: string;
  /** What is found and what to do, as sentences. */
  readonly message: string;
}

/** What makes a program agree with what was found, in the languages of a program and of access.ignore. */
export interface Acceptance {
  /** That of the program. */
  readonly language: Format;
  /** What declares what is in no program, and takes it over: statements, entries of `resources`, or blocks of Terraform. */
  readonly program: string;
  /** What to change in the program, a line for each resource. */
  readonly changes: readonly string[];
  /** Lines of access.ignore for what no program can take over, such as an API key. */
  readonly exceptions: readonly string[];
}

/** How program, state and live service differ. */
export interface DriftReport extends Result {
  /** Raised by a change of this format that breaks programs which read it (docs/review-json.md). */
  readonly version: 1;
  /** Address of the service; left out where none is set. */
  readonly service?: string;
  /** What somebody changed or deleted. */
  readonly drifted: readonly DriftedResource[];
  /** What no program declares, with what is excepted. */
  readonly unmanaged: readonly FoundObject[];
  /** What `--unmanaged` says. */
  readonly unmanagedCounts: UnmanagedMode;
  /** What the program declares, and nobody applied yet. */
  readonly notApplied: readonly ShownStep[];
  readonly namespaces: readonly DriftedNamespace[];
  /** API keys that have expired or will soon. */
  readonly expiring: readonly ExpiringKey[];
  /** How the program comes to agree with what was found. */
  readonly acceptance: Acceptance;
  /** What could not be looked at, as sentences: nobody can tell whether it has drifted. */
  readonly unseen: readonly string[];
  /** What else was not to be known, and what to put right in the exceptions, as sentences. */
  readonly notes: readonly string[];
}

/** What `gatehouse drift --json` prints: how program, state and live service differ. */
export interface PrintedDrift extends Omit<DriftReport, "steps"> {
  /** All resources, those that are as in the state too. */
  readonly steps: readonly ShownStep[];
  /** Where there are policy tests beside the program, and they were run. */
  readonly policyTests?: TestedNamespace;
}

/** What unmanaged objects mean for a run: an exit code, a mention, or that nobody looks for them. */
export type UnmanagedMode = "fail" | "warn" | "ignore";

export const openObjects = ({ unmanaged }: Pick<DriftReport, "unmanaged">): readonly FoundObject[] =>
  unmanaged.filter(({ exception }) => exception === undefined);

/** Those of them that count as findings: none unless `--unmanaged` is `fail`. */
export const countedObjects = (report: DriftReport): readonly FoundObject[] =>
  report.unmanagedCounts === "fail" ? openObjects(report) : [];

export const isDrift = (report: DriftReport): boolean =>
  report.drifted.length > 0 || report.expiring.length > 0 || countedObjects(report).length > 0;

const VALUE_MAX = 60;

/** A value in a sentence, shortened. */
export function valueText(value: FieldChange["old"]): string {
  if (value === undefined) return "left out";
  const text = JSON.stringify(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX).toWellFormed()}…` : text;
}
