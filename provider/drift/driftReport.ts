import type { FieldChange, Result, ShownStep } from "../engine/index.ts";
import type { Format } from "../import/model.ts";
import type { UnmanagedObject } from "../namespace/coverage.ts";
import type { ExpiredObject } from "../namespace/expired.ts";
import type { PrivilegeChanges } from "../privileges/privileges.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import type { DeclaringResource, TrailNote } from "../service/auditTrail.ts";
import { valueJson } from "../words.ts";

/** The origin of a finding, and its effect on access. */
export interface Known {
  /**
   * The resource that was the last to declare the object. Programs send this resource with their requests. Omitted if
   * unknown.
   */
  readonly declaredBy?: DeclaringResource;
  /** The latest audit trail entry of the object; omitted if there is no entry. */
  readonly by?: TrailNote;
  /**
   * The time at which `drift` first found the difference, RFC 3339 in UTC. Omitted if the service has an audit trail.
   */
  readonly firstSeen?: string;
  /** Effect of the finding on access, as sentences; empty if there is no effect. */
  readonly effects: readonly string[];
}

/** A resource whose object was changed or deleted out of band. */
export interface DriftedResource extends ShownStep, Known {
  readonly op: "update" | "delete";
}

/** An unmanaged object. */
export interface ReportedObject extends UnmanagedObject, Known {
  /** Id of the namespace. */
  readonly tenant: string;
}

/**
 * The effect of drift in one namespace: the gained, lost and changed privileges compared with the program. `access` is
 * null if the access is not known.
 */
export interface DriftedNamespace extends PrivilegeChanges {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Name of the namespace. If the credential may not read the name, the id of the namespace. */
  readonly name: string;
}

/** An API key that has expired or expires soon. */
export interface ExpiringKey {
  /** Id of the namespace. */
  readonly tenant: string;
  readonly name: string;
  /** The expiry time, RFC 3339 in UTC. */
  readonly expiresAt: string;
  /** The finding and its remedy, as a sentence. */
  readonly message: string;
}

/** Changes to the program and to `access.ignore` that accept the drift. */
export interface Acceptance {
  /** Language of the program. */
  readonly language: Format;
  /** Code that adopts unmanaged objects: statements, entries of `resources`, or Terraform blocks. */
  readonly program: string;
  /** Changes to existing declarations, one line for each resource. */
  readonly changes: readonly string[];
  /** Lines for `access.ignore`, for objects that a program cannot adopt, such as API keys. */
  readonly exceptions: readonly string[];
}

/** The differences between the program, the state and the live service. */
export interface DriftReport extends Result {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  /** Address of the service; omitted if no address is set. */
  readonly service?: string;
  /** Resources whose objects were changed or deleted out of band. */
  readonly drifted: readonly DriftedResource[];
  /** Unmanaged objects, including those with an exception. */
  readonly unmanaged: readonly ReportedObject[];
  /** The value of `--unmanaged`: the treatment of unmanaged objects. */
  readonly unmanagedMode: UnmanagedMode;
  /** Changes in the program that are not applied yet. */
  readonly notApplied: readonly ShownStep[];
  /** The effect of drift, by namespace. */
  readonly namespaces: readonly DriftedNamespace[];
  /** API keys that have expired or expire soon. */
  readonly expiring: readonly ExpiringKey[];
  /** Expired objects, both declared and unmanaged. Expired objects are not findings. */
  readonly expired: readonly ExpiredObject[];
  /** Changes that accept the drift. */
  readonly acceptance: Acceptance;
  /** Sentences about namespaces, lists and resources that could not be evaluated and may have drifted. */
  readonly notEvaluated: readonly string[];
  /** Further notes as sentences, such as facts that are not known and outdated exceptions. */
  readonly notes: readonly string[];
}

/** Output of `gatehouse drift --json`: the differences between the program, the state and the live service. */
export interface PrintedDrift extends Omit<DriftReport, "steps"> {
  /** The steps of all resources, including unchanged resources. */
  readonly steps: readonly ShownStep[];
  /** Results of the policy tests; omitted if no policy tests ran. */
  readonly policyTests?: TestedNamespace;
}

/**
 * Treatment of unmanaged objects. `fail`: the objects are findings. `warn`: the objects are only reported. `ignore`:
 * the run does not search for unmanaged objects.
 */
export type UnmanagedMode = "fail" | "warn" | "ignore";

/** Returns the unmanaged objects that have no exception in `access.ignore`. */
export const openObjects = ({ unmanaged }: Pick<DriftReport, "unmanaged">): readonly ReportedObject[] =>
  unmanaged.filter(({ exception }) => exception === undefined);

/** Returns the unmanaged objects that are treated as findings. Returns no objects unless `--unmanaged` is `fail`. */
export const countedObjects = (report: DriftReport): readonly ReportedObject[] =>
  report.unmanagedMode === "fail" ? openObjects(report) : [];

/** Returns true if a report has findings. */
export const isDrift = (report: DriftReport): boolean =>
  report.drifted.length > 0 || report.expiring.length > 0 || countedObjects(report).length > 0;

const VALUE_MAX = 60;

/** Returns a value as text for a sentence. Shortens long values. */
export function valueText(value: FieldChange["old"]): string {
  if (value === undefined) return "not set";
  const text = valueJson(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX).toWellFormed()}…` : text;
}
