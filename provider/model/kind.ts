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
 * The meaning of a kind of object in a namespace: its reading, the effect of a plan on its objects, the privileges that
 * the objects give, and the words of reports. Generic code calls these parts and names no kind.
 */
export interface Kind {
  readonly definition: ResourceDefinition;
  /**
   * Returns the key of an object in its namespace. Two objects have the same key only if the server does not return the
   * values that distinguish them.
   */
  readonly keyOf: (object: LiveObject) => string;
  /** The reading of the objects. Undefined if they are parts of other objects, as the tags of a device are. */
  readonly reading: Reading | undefined;
  /** The way to the objects as parts of other objects. Undefined if they are read. */
  readonly parts: Parts | undefined;
  /**
   * The objects for which every review, coverage and drift report checks whether a program manages them; undefined if
   * unmanaged objects of the kind give no privilege. Users can create such objects manually.
   */
  readonly watched: Watched | undefined;
  /** The operations that the resource calls, for the check of permissions before a run. */
  readonly operations: Readonly<Record<"create" | "update" | "delete", readonly OperationId[]>>;
  readonly plan: KindPlan;
  /**
   * Returns the steps that the service would reject because of a quota, as sentences with the resources, the problem and
   * a remedy. Undefined if no quota limits the objects.
   */
  readonly quota: ((check: QuotaCheck) => Promise<readonly string[]>) | undefined;
  /** The part of the objects in decisions about logins; undefined if they decide about none. */
  readonly decides: Deciding | undefined;
  /** Returns the role that an object gives to a user or a program. Undefined for kinds that give no roles. */
  readonly role: ((object: LiveObject) => HeldRole | undefined) | undefined;
  /**
   * The changes of the objects that reports list other than access. Undefined if all effects of the kind are access.
   */
  readonly changes: ChangeList | undefined;
  /** Returns what the lint checks of the objects other than logins. Undefined if it checks nothing else. */
  readonly linted: ((objects: Objects) => LintOptions) | undefined;
  /** Where `import` writes the declarations. Undefined if it declares the objects by another kind, or not at all. */
  readonly imported: Imported | undefined;
}

/** A plan in one namespace whose new and changed objects of a kind may exceed a quota. */
export interface QuotaCheck {
  readonly opened: TenantClient;
  readonly namespace: Namespace;
  /** The steps that create or change objects of the kind. */
  readonly steps: readonly PlannedStep[];
  /** Returns the policy of the namespace before and after the plan. */
  readonly policies: () => Promise<{ readonly before: NamespacePolicy; readonly after: NamespacePolicy }>;
}

/** The reading of the objects of a kind. */
export interface Reading {
  /** The objects in sentences: `API keys`. */
  readonly what: string;
  /** The consequence if the objects are not read, as a clause: `unmanaged API keys cannot be detected`. */
  readonly missed: string;
  /** True if a namespace without these objects cannot be evaluated at all. */
  readonly isRequired: boolean;
  /** True if the objects enroll without a plan, as devices do. A saved plan does not compare them. */
  readonly isEnrolled: boolean;
  /** True if the objects keep the order of their creation. Otherwise they are sorted by name. */
  readonly inOrderOfCreation: boolean;
  /**
   * Returns the objects of a namespace.
   * @default the objects that the definition lists
   */
  readonly read: (connection: Connection, tenant: string) => Promise<ReadObjects>;
}

/** The objects of a kind, as far as they could be read. */
export interface ReadObjects {
  /** Undefined if the objects could not be read; {@link unread} then contains the reason. */
  readonly objects: readonly Listed[] | undefined;
  /** The objects that could not be read. */
  readonly unread?: Unread;
  /** Parts without which the access is evaluated, as sentences. */
  readonly notEvaluated?: readonly string[];
}

/** Objects that are parts of other objects, as the tags of a device are. */
export interface Parts {
  /** Returns the objects, from the objects that contain them. */
  readonly of: (objectsOf: ObjectsOf) => LiveObject[];
  /** The kind of the objects that contain them. */
  readonly whole: ResourceDefinition;
  /** Returns an object that contains parts without some of these parts. */
  readonly without: (whole: LiveObject, parts: readonly LiveObject[]) => LiveObject;
  /** Returns the key of the object that contains a part. */
  readonly wholeOf: (part: LiveObject) => string;
}

/** The treatment of unmanaged objects of a kind in reports. */
export interface Watched {
  /**
   * Returns true if an object counts.
   * @default every object counts
   */
  readonly counts?: (object: LiveObject) => boolean;
  /**
   * True if access.ignore can name an object by its display name too, and names it so by default.
   * @default false
   */
  readonly isNamed?: boolean;
  /** Returns the reason why a repair keeps an unmanaged object. Undefined if it may delete the object. */
  readonly keptBy?: (object: LiveObject, repairer: Repairing) => string | undefined;
  /** Returns the privilege that an object gives other than logins and roles, as a sentence without its subject. */
  readonly privilege?: (state: Values) => string | undefined;
}

/** The facts about a repair that decide whether it may delete an object. */
export interface Repairing {
  /** The kind of the credential, such as an API key. */
  readonly credential: Identity["kind"];
  /** Id of the user who runs the repair; undefined for other credentials. */
  readonly userId: string | undefined;
  /** Id of the trusted workload that runs the repair; undefined for other credentials. */
  readonly workloadId: string | undefined;
  /** True if the namespace may deny every login without its unmanaged access policies. */
  readonly isClosed: boolean;
}

/** The effects of a kind in a plan beyond the generic create, update and delete of an object by its inputs. */
export interface KindPlan {
  /**
   * Steps of a lower stage are applied first, since other resources refer to their objects: `names` for tags and device
   * names, `principals`, `objects`, `policies`, and `mode` for the change of the access mode, which needs the access policies.
   */
  readonly stage: Stage;
  /** The selectors of other resources to which the input `name` of the resource gives a meaning. */
  readonly names?: "devices" | "tags";
  /**
   * Returns true if the deletion of a resource with these values deletes its object.
   * @default every deletion deletes the object
   */
  readonly deletesObject?: (before: ResourceValues) => boolean;
  /** Returns facts about the objects after a plan that are not known before the apply, as sentences. */
  readonly unknownAfter?: (draft: Draft) => readonly string[];
  /** Returns the key of the object of a resource in the state; an empty text if the state does not contain it. */
  readonly keyOf: (before: ResourceValues) => string;
  /**
   * Returns values that decide about the effect of an object, and that a saved plan contains beside the inputs and the
   * outputs that do not change by themselves.
   */
  readonly captured?: (object: LiveObject) => Values;
  /**
   * Returns the key of the object that a new resource creates or adopts. Undefined if the service has not assigned the
   * key yet.
   * @throws UnpredictableError if the object cannot be predicted
   */
  readonly newKey?: (draft: Draft, planned: PlannedStep, inputs: Values) => string | undefined;
  /**
   * Returns the values of a new or changed object that its inputs do not contain.
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
   * @param isClaimed returns true if a resource of the program manages the object with this key of a claim and does not
   * share the object with other resources
   */
  readonly remove?: (
    draft: Draft,
    planned: PlannedStep,
    before: ResourceValues,
    isClaimed: (key: string) => boolean,
  ) => void;
  /** Applies changes of all resources of the kind together, before any other step. */
  readonly together?: (draft: Draft, planned: readonly PlannedStep[]) => void;
  /**
   * Returns the end of the declared access, in RFC 3339; an empty text if there is none or it is not known.
   * @default the input `expiresAt`
   */
  readonly declaredEnd?: (after: ResourceValues, now: Date) => string;
}

/** The stages of a plan, in their order. */
export const STAGES = ["names", "principals", "objects", "policies", "mode"] as const;

type Stage = (typeof STAGES)[number];

/** A new or changed object of a plan. */
export interface PlannedChange {
  readonly planned: PlannedStep;
  readonly after: ResourceValues;
  readonly inputs: Values;
  readonly key: string;
  /** The object before the step; undefined for a new object. */
  readonly object: LiveObject | undefined;
}

/** The part of a policy to which a kind of object contributes. */
export interface PolicyParts {
  readonly devices?: readonly AccessDevice[];
  readonly keys?: readonly AccessKey[];
  readonly rules?: readonly AccessRule[];
  readonly members?: readonly AccessMember[];
  readonly policies?: readonly AccessPolicy[];
  readonly principals?: readonly Principal[];
}

/** Returns the end of an object as a policy contains it. Policies are compared, so each time has only one form. */
export const policyEnd = ({
  expiresAt,
}: {
  readonly expiresAt?: string | undefined;
}): { readonly expiresAt?: string } => (expiresAt ? { expiresAt: canonicalTime(expiresAt) } : {});

/** The part of a kind of object in decisions about logins. */
export interface Deciding {
  /** Returns the parts of the policy that the objects of the kind are. */
  readonly parts: (objects: Iterable<LiveObject>, facts: DecidingFacts) => PolicyParts;
  /**
   * Returns the reason why an object cannot be evaluated, as part of a sentence.
   * @default every object can be evaluated
   */
  readonly obstacle?: (object: LiveObject) => string | undefined;
  /**
   * Returns false if an object certainly decides about no login.
   * @default returns true for an object that acts in the present access mode
   */
  readonly isDeciding?: (object: LiveObject, policy: NamespacePolicy) => boolean;
  /** The subjects of access that the objects are: keys in one mode, principals in the other. */
  readonly subject?: SubjectFacts["kind"];
  /** The part of an access decision that refers to an object, beside its subject. */
  readonly decision?: "rule" | "policy";
}

/** Where `import` writes the declarations of a kind. */
export interface Imported {
  /** Name of the file without its ending. */
  readonly file: string;
  /** Name of the input that usually equals the resource's name. */
  readonly naming?: string;
  /** Returns the resource's name for an object without a name. */
  readonly nameOf?: (inputs: Values) => string;
  /**
   * The Pulumi options of each resource of the kind. With the option `protect`, `destroy` does not delete the resource.
   */
  readonly options?: Values;
}

/** Returns how objects are read that the definition lists. */
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
