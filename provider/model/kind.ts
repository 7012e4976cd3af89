import type { Identity } from "@gatehouse-access/sdk";
import type {
  AccessDevice,
  AccessKey,
  AccessMember,
  AccessPolicy,
  AccessRule,
  LintOptions,
  NamespacePolicy,
  Principal,
  SubjectFacts,
} from "@gatehouse-access/sdk/policy";
import { canonicalTime } from "@gatehouse-access/sdk/times";
import type { ResourceValues } from "../engine/index.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import type { Namespace } from "../service/listings.ts";
import type { OperationId } from "../service/operations.ts";
import type { Values } from "../values.ts";
import type { ChangeList } from "./changes.ts";
import type { Listed, ResourceDefinition } from "./definition.ts";
import type { Draft } from "./draft.ts";
import type { DecidingFacts, ObjectsOf, Unread } from "./namespaceObjects.ts";
import type { LiveObject, Objects } from "./object.ts";
import type { PlannedStep } from "./plannedStep.ts";
import type { HeldRole } from "./roles.ts";

/**
 * The behavior of one kind of object in a namespace: how to read its objects, how a plan changes them, which privileges
 * they give, and how reports describe them. Generic code uses these properties and never refers to a specific kind.
 */
export interface Kind {
  readonly definition: ResourceDefinition;
  /**
   * Returns the key of an object. The key identifies the object in its namespace. Two objects can have the same key
   * only if the server does not return the values that distinguish them.
   */
  readonly keyOf: (object: LiveObject) => string;
  /**
   * The functions that read the objects from the service. Undefined if the objects are parts of other objects, such as
   * the tags of a device.
   */
  readonly reading: Reading | undefined;
  /**
   * The functions that find objects of the kind in the objects that contain them. Undefined if the objects are read
   * directly.
   */
  readonly parts: Parts | undefined;
  /**
   * The treatment of unmanaged objects of the kind in reports. Every review, coverage report and drift report checks
   * whether a program manages these objects. Undefined if unmanaged objects of the kind give no privilege, so users can
   * create such objects manually.
   */
  readonly watched: Watched | undefined;
  /**
   * The operations of the service that the resource calls. A check before each run uses them to verify the permissions
   * of the credential.
   */
  readonly operations: Readonly<Record<"create" | "update" | "delete", readonly OperationId[]>>;
  readonly plan: KindPlan;
  /**
   * Returns sentences about the steps that the service would reject because of a quota. Each sentence contains the
   * resources, the problem and a remedy. Undefined if no quota limits the objects.
   */
  readonly quota: ((check: QuotaCheck) => Promise<readonly string[]>) | undefined;
  /** The effect of the objects on the authorization of logins. Undefined if the objects have no such effect. */
  readonly decides: Deciding | undefined;
  /**
   * Returns the role that an object gives to a user or a program, or undefined if it gives no role. The function is
   * undefined for kinds without roles.
   */
  readonly role: ((object: LiveObject) => HeldRole | undefined) | undefined;
  /**
   * The changes to the objects that reports list separately from gained and lost logins. Undefined if the objects
   * affect only logins.
   */
  readonly changes: ChangeList | undefined;
  /**
   * Returns the objects in the form in which the lint checks them. Undefined if the lint does not check the kind, or
   * checks it only as a part of the policy.
   */
  readonly linted: ((objects: Objects) => LintOptions) | undefined;
  /**
   * The form in which `import` writes the declarations. Undefined if `import` declares the objects as a different kind,
   * or does not declare them.
   */
  readonly imported: Imported | undefined;
}

/**
 * The data for the check whether a plan exceeds a quota. The check covers the new and changed objects of one kind in
 * one namespace.
 */
export interface QuotaCheck {
  readonly opened: TenantClient;
  readonly namespace: Namespace;
  /** The steps that create or change objects of the kind. */
  readonly steps: readonly PlannedStep[];
  /** Returns the policy of the namespace before and after the plan. */
  readonly policies: () => Promise<{ readonly before: NamespacePolicy; readonly after: NamespacePolicy }>;
}

/** The functions that read the objects of a kind. */
export interface Reading {
  /** The plural noun for the objects in sentences: `API keys`. */
  readonly what: string;
  /** The consequence if the objects cannot be read, as a clause: `unmanaged API keys cannot be detected`. */
  readonly missed: string;
  /**
   * True if these objects are necessary to evaluate a namespace. If they cannot be read, the namespace cannot be
   * evaluated at all.
   */
  readonly isRequired: boolean;
  /**
   * True if objects appear without a plan, as devices do when they enroll. The comparison with a saved plan ignores
   * these objects.
   */
  readonly isEnrolled: boolean;
  /** True if reports list the objects in the order of their creation. Otherwise, the objects are sorted by name. */
  readonly inOrderOfCreation: boolean;
  /**
   * Returns the objects of a namespace.
   * @default returns the objects that the definition lists
   */
  readonly read: (connection: Connection, tenant: string) => Promise<ReadObjects>;
}

/** The objects of a kind, and notes about objects that could not be read or evaluated. */
export interface ReadObjects {
  /** The objects. Undefined if the objects could not be read. {@link unread} then contains the reason. */
  readonly objects: readonly Listed[] | undefined;
  /** The noun for the objects that could not be read, the reason and the consequence. */
  readonly unread?: Unread;
  /** The objects that the evaluation of access omits, as sentences. */
  readonly notEvaluated?: readonly string[];
}

/** The functions for objects that are parts of other objects, such as the tags of a device. */
export interface Parts {
  /** Returns the parts of all objects of the kind {@link whole}. */
  readonly of: (objectsOf: ObjectsOf) => LiveObject[];
  /** The definition of the objects that contain the parts. */
  readonly whole: ResourceDefinition;
  /** Returns a copy of the object `whole` without these parts. */
  readonly without: (whole: LiveObject, parts: readonly LiveObject[]) => LiveObject;
  /** Returns the key of the object that contains a part. */
  readonly wholeOf: (part: LiveObject) => string;
}

/** The treatment of unmanaged objects of a kind in reports. */
export interface Watched {
  /**
   * Returns true if reports check whether a program manages the object.
   * @default reports check every object
   */
  readonly counts?: (object: LiveObject) => boolean;
  /**
   * True if an exception in `access.ignore` may contain the display name of an object instead of its id. Generated
   * exceptions then contain the display name.
   * @default false
   */
  readonly isNamed?: boolean;
  /**
   * Returns the reason why a repair must not delete an unmanaged object. Returns undefined if the repair may delete the
   * object.
   */
  readonly keptBy?: (object: LiveObject, repairer: Repairing) => string | undefined;
  /**
   * Returns the privilege that an object gives, as a sentence without its subject. Logins and roles are not included,
   * because they have their own functions.
   */
  readonly privilege?: (state: Values) => string | undefined;
}

/** Facts about a repair, which reverts drift. They determine whether the repair may delete an object. */
export interface Repairing {
  /** The kind of credential that the repair uses, such as an API key. */
  readonly credential: Identity["kind"];
  /** The id of the user who runs the repair. Undefined if the credential does not belong to a user. */
  readonly userId: string | undefined;
  /**
   * The id of the trusted workload that runs the repair. Undefined if the credential does not belong to a trusted
   * workload.
   */
  readonly workloadId: string | undefined;
  /**
   * True if the deletion of the unmanaged access policies might leave the namespace without access, so that it denies
   * every login.
   */
  readonly isClosed: boolean;
}

/**
 * The effect of a plan on objects of a kind. By default, the inputs of a resource create, update or delete its object.
 */
export interface KindPlan {
  /**
   * The stage of the steps. Steps of an earlier stage are applied first, because later steps refer to their objects.
   * The stages are `names` (tags and device names), `principals`, `objects`, `policies` and `mode`. The access mode
   * changes last, because the new mode needs the access policies.
   */
  readonly stage: Stage;
  /** The type of object that the input `name` identifies. Selectors of other resources can refer to this name. */
  readonly names?: "devices" | "tags";
  /**
   * Returns true if the deletion of a resource with these values also deletes its object.
   * @default every deletion deletes the object
   */
  readonly deletesObject?: (before: ResourceValues) => boolean;
  /** Returns facts about the objects that will be known only after the apply, as sentences. */
  readonly unknownAfter?: (draft: Draft) => readonly string[];
  /**
   * Returns the key of the object that a resource in the state manages. Returns an empty string if the state does not
   * contain the key.
   */
  readonly keyOf: (before: ResourceValues) => string;
  /**
   * Returns additional values of an object that determine its effect. A saved plan contains three kinds of values: the
   * inputs, the outputs that change only with an update, and these values.
   */
  readonly captured?: (object: LiveObject) => Values;
  /**
   * Returns the key of the object that a new resource creates or adopts. Returns undefined if the service has not
   * assigned the key yet.
   * @throws UnpredictableError if the object cannot be predicted
   */
  readonly newKey?: (draft: Draft, planned: PlannedStep, inputs: Values) => string | undefined;
  /**
   * Returns the values of a new or changed object that are not among the inputs.
   * @param object the object before the step; undefined for a new object
   * @throws UnpredictableError if the object cannot be predicted
   */
  readonly values?: (draft: Draft, change: PlannedChange) => Values;
  /** Replaces the generic creation. */
  readonly create?: (draft: Draft, planned: PlannedStep, inputs: Values) => void;
  /** Replaces the generic update. */
  readonly update?: (draft: Draft, planned: PlannedStep, inputs: Values, before: ResourceValues) => void;
  /**
   * Replaces the generic deletion.
   * @param isClaimed returns true if a resource of the program has an exclusive claim with this key
   */
  readonly remove?: (
    draft: Draft,
    planned: PlannedStep,
    before: ResourceValues,
    isClaimed: (key: string) => boolean,
  ) => void;
  /** Applies the changes of all resources of the kind together. Called before any other step is applied. */
  readonly together?: (draft: Draft, planned: readonly PlannedStep[]) => void;
  /**
   * Returns the expiry time of the declared access, in RFC 3339. Returns an empty string if the access does not expire,
   * or if the expiry time is unknown.
   * @default the input `expiresAt`
   */
  readonly declaredEnd?: (after: ResourceValues, now: Date) => string;
}

/** The stages of a plan, in their order. */
export const STAGES = ["names", "principals", "objects", "policies", "mode"] as const;

type Stage = (typeof STAGES)[number];

/** A step of a plan that creates or changes an object. */
export interface PlannedChange {
  readonly planned: PlannedStep;
  readonly after: ResourceValues;
  readonly inputs: Values;
  readonly key: string;
  /** The object before the step; undefined for a new object. */
  readonly object: LiveObject | undefined;
}

/** The parts of a namespace's policy. Objects of one kind provide some of these parts. */
export interface PolicyParts {
  readonly devices?: readonly AccessDevice[];
  readonly keys?: readonly AccessKey[];
  readonly rules?: readonly AccessRule[];
  readonly members?: readonly AccessMember[];
  readonly policies?: readonly AccessPolicy[];
  readonly principals?: readonly Principal[];
}

/**
 * Returns the expiry time of an object in the form that policies contain. Policies are compared for equality, so the
 * same time must always have the same form.
 */
export const policyEnd = ({
  expiresAt,
}: {
  readonly expiresAt?: string | undefined;
}): { readonly expiresAt?: string } => (expiresAt ? { expiresAt: canonicalTime(expiresAt) } : {});

/** The effect of a kind's objects on the authorization of logins. */
export interface Deciding {
  /** Returns the parts of the policy that the objects represent. */
  readonly parts: (objects: Iterable<LiveObject>, facts: DecidingFacts) => PolicyParts;
  /**
   * Returns the reason why access cannot be evaluated with this object, as a clause. Returns undefined if the object
   * can be evaluated.
   * @default every object can be evaluated
   */
  readonly obstacle?: (object: LiveObject) => string | undefined;
  /**
   * Returns false if an object certainly does not affect the authorization of logins.
   * @default returns true for an object that has an effect in the current access mode
   */
  readonly isDeciding?: (object: LiveObject, policy: NamespacePolicy) => boolean;
  /**
   * The kind of subject that the objects are. A subject is the object to which access is given: a key in legacy mode, a
   * principal in identity mode. Omitted if the objects are not subjects.
   */
  readonly subject?: SubjectFacts["kind"];
  /**
   * The property of an access decision that refers to objects of the kind. Omitted if a decision refers to them only as
   * the subject, or not at all.
   */
  readonly decision?: "rule" | "policy";
}

/** The form in which `import` writes the declarations of a kind: the file, the resource names and the options. */
export interface Imported {
  /** The name of the file without its extension. */
  readonly file: string;
  /** The name of the input that usually equals the resource's name. */
  readonly naming?: string;
  /** Returns a resource name for an object that has no name. */
  readonly nameOf?: (inputs: Values) => string;
  /**
   * The Pulumi options of each resource of the kind. With the option `protect`, `destroy` does not delete the resource.
   */
  readonly options?: Values;
}

/** Returns a {@link Reading} that uses the list function of the definition. */
export const listedBy = (
  definition: ResourceDefinition,
  reading: Pick<Reading, "what" | "missed"> & Partial<Reading>,
): Reading => ({
  isRequired: false,
  isEnrolled: false,
  inOrderOfCreation: false,
  read: async (connection, tenant) => ({ objects: (await definition.list?.(connection, tenant)) ?? [] }),
  ...reading,
});
