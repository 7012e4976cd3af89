import type { SshAccessMode } from "@gatehouse-access/sdk";
import { CLAIMED_KINDS, type Declaration, type ObjectKind } from "@gatehouse-access/sdk/contract";
import type { FieldPath } from "@gatehouse-access/sdk/errors";
import type { Message, ResourceFault } from "../resourceError.ts";
import type { NeededCapability } from "../service/capabilities.ts";
import type { Connection } from "../service/connection.ts";
import type { Values } from "../values.ts";
import type { Inputs, InputValues, Outputs, State } from "./fields.ts";
import type { IdForm } from "./idForm.ts";
import { hasEnded } from "./validity.ts";

/**
 * Facts that `gatehouse-server` returns with an object in addition to its fields. States do not contain these facts.
 */
export interface LiveFacts {
  /** The revision of the object's declared fields. */
  readonly revision?: string | undefined;
  /**
   * The resource that was the last to declare the object. Undefined if the service has no declaration of the object.
   */
  readonly declaredBy?: Declaration | undefined;
}

/** An object that exists. */
export interface Existing<S> {
  readonly id: string;
  readonly state: S;
  /**
   * The facts that the service returned with the object. Empty if the server returns no such facts. Undefined if the
   * object was not read from the service.
   */
  readonly live?: LiveFacts | undefined;
}

/** Returns the facts that the service returned with an object. */
export const liveFacts = ({ revision, declaredBy }: LiveFacts): LiveFacts => ({
  ...(revision !== undefined && { revision }),
  ...(declaredBy && { declaredBy: declarationIn(declaredBy) }),
});

/**
 * The object that a resource type manages. The audit trail and the declarations on the service refer to it by its kind
 * and id.
 */
export interface ServiceObject {
  readonly kind: ObjectKind;
  /**
   * Returns the id of the object.
   * @default the id of the resource without the namespace
   */
  id?(id: string, state: Values): string;
  /**
   * Returns true if the resource with this id manages a part of the object, and a change to the object added this part.
   * For example, each attachment of a tag manages a part of a device's tags. Defined only if resources of several
   * programs each manage a part of the object. In this case, the declaration of the object identifies none of these
   * resources.
   */
  isPart?(id: string, change: { readonly before: unknown; readonly after: unknown }): boolean;
}

/** An object of a namespace, with the inputs and outputs that a resource for this object would have. */
export interface Listed<S = Values> {
  readonly id: string;
  /**
   * The display name of the object, such as a key's name or a member's e-mail address. Any string is possible,
   * including an empty string.
   */
  readonly name: string;
  readonly state: S;
  /** The reason why no program can declare the object. Omitted if a program can declare it. */
  readonly reason?: string;
  /** Facts about the object that are not fields of its resource type, such as the role of a service account. */
  readonly facts?: Values;
  /**
   * The resource that was the last to declare the object, according to the service. Undefined if the service has no
   * declaration of the object.
   */
  readonly declaredBy?: Declaration | undefined;
}

/** An error in an input. */
export type Failure = ResourceFault;

/**
 * A stale input: it requires an update or a replacement, although the program did not change it. For example, an
 * expired invitation requires an update.
 */
export interface Stale {
  readonly field: string;
  readonly replaces: boolean;
  /**
   * The reason for the change, for the user who runs the program. Messages print the reason after the name of the
   * resource.
   */
  readonly reason?: Message;
}

/** A capability that an input needs. */
export interface Need {
  readonly capability: NeededCapability;
  /**
   * The path of the input, or the path of a value inside the input. Undefined if the resource itself needs the
   * capability.
   */
  readonly field?: FieldPath;
  /**
   * True if the state already contains the same value. Checks then skip the capability, unless a setting requires the
   * check.
   */
  readonly isUnchanged?: boolean;
}

/** The data that a create needs in addition to the inputs. */
export interface Origin {
  /** The resource's name in the program. */
  readonly name: string;
  /**
   * The idempotency key of the create. All attempts to create this object use the same key, including the attempts of
   * later runs. If later runs cannot compute the key, only the attempts of this run use the same key. If another
   * resource has claimed the object that was created with this key, use a different key: see {@link after}.
   */
  readonly idempotencyKey: string;
  /**
   * True if the engine passes the resource's name. Later runs can then recognize the resource and compute the same
   * {@link idempotencyKey}.
   */
  readonly isNamed: boolean;
  /**
   * The object that this create replaces, with its values in the state. Undefined if the create replaces no object, or
   * if the engine did not pass the object.
   */
  readonly replaced: Existing<Values> | undefined;
  /** The values that the program chose for outputs. See {@link OutputField.choice}. */
  readonly chosen: Values;
  /** The inputs of the replaced object if the engine passed its inputs, but not the object itself. */
  readonly unseen: Values | undefined;
  /**
   * Claims the object with this id for this resource, so that no deletion in this run removes the object.
   * @throws DuplicateDeclarationError if another resource of this program has claimed the object
   */
  claim(id: string): void;
  /** Returns true if another resource of this program has claimed the object with this id. */
  isOthers(id: string): boolean;
  /**
   * Returns the same data with a different idempotency key. Call this function if the service returned the object `id`
   * for the current key, and another resource has claimed that object.
   */
  after(id: string): Origin;
}

/**
 * A claim of a resource on an object. While a resource has an exclusive claim, no other resource of the program can
 * manage the object.
 */
export interface Claim {
  readonly key: string;
  /** The input that an error about this claim points to. */
  readonly property: string;
  /** True if several resources of the same type may have this claim. Otherwise, the claim is exclusive. */
  readonly shared?: boolean;
}

/** Returns true if a resource of this program has an exclusive claim. `key` is the key of a {@link Claim}. */
export type IsClaimed = (key: string) => boolean;

/**
 * The claims of a resource: the keys that identify the object that it manages. Before the object exists, the inputs
 * determine the claims. Afterwards, the id of the object determines them.
 */
export interface Identity<I extends Inputs = Inputs> {
  /** The inputs that determine the claims. */
  readonly fields: readonly (keyof I & string)[];
  ofInputs(inputs: InputValues<I>): readonly Claim[];
  /**
   * Returns the claims on the object with this id.
   * @default a claim on the id itself
   */
  ofId?(id: string): readonly Claim[];
}

/**
 * The rotation of objects. A rotated object keeps working for some time after its replacement. The create of the
 * successor then needs the replaced object, but Terraform does not pass this object to a create. The Terraform provider
 * therefore plans such a replacement as an update. The update creates the successor and then deletes the replaced
 * object.
 */
export interface Rotation<S = Values> {
  /**
   * Returns the keys of the claims on the object itself. They are computed from the state, because the id does not
   * identify the object.
   */
  objectKeys(state: S): readonly string[];
  /**
   * Returns the keys of the claims on replaced objects that still work. While the resource has such a claim, no
   * deletion in the run removes the claimed object.
   */
  keeps(state: S): readonly string[];
  /**
   * Returns the state of the successor with the replaced object added. Called if the replaced object could not be
   * deleted yet. The next update deletes it.
   */
  withReplaced(state: S, replaced: S): S;
}

/**
 * A type of declarative resource. The data of the definition determine the Pulumi classes, the schemas, the replacement
 * rules and the reference. The functions of the definition call the service.
 */
export interface ResourceDefinition<I extends Inputs = Inputs, O extends Outputs = Outputs> {
  readonly name: string;
  readonly description: string;
  readonly inputs: I;
  readonly outputs: O;
  /** The form of the resource's ids. Imports accept ids in this form. */
  readonly id: Pick<IdForm<never>, "text" | "example">;
  /** A note on ids that the form in {@link id} does not explain. */
  readonly idNote?: string;
  /**
   * The object that the resource manages on `gatehouse-server`. Undefined if `gatehouse-server` does not have objects
   * of this type.
   */
  readonly object?: ServiceObject;
  readonly identity?: Identity<I>;
  /**
   * The input that contains tags. `gives`: the resource adds these tags to devices. `needs`: the resource filters
   * devices by these tags, so the tags must exist before the resource is created.
   */
  readonly tags?: { readonly gives: keyof I & string } | { readonly needs: keyof I & string };
  /** The rotation of the objects. Undefined if a run deletes a replaced object immediately. */
  readonly rotation?: Rotation<Readonly<State<I, O>>>;
  /**
   * Returns all objects of this type in a namespace, in any order. Undefined for a resource type whose objects a
   * program cannot declare separately.
   */
  list?(connection: Connection, tenant: string): Promise<readonly Listed<State<I, O>>[]>;
  /**
   * Returns the display name of an object. {@link list} returns the same name.
   * @default the value `name`
   */
  displayName?(state: Values): string;
  /**
   * Returns the id of the object with this name, or undefined if no object has this name.
   * @default the id of the object with that name in {@link list}
   * @throws Error if several objects have the name
   */
  named?(connection: Connection, tenant: string, name: string): Promise<string | undefined>;
  /** Returns the errors that result from combinations of inputs. All inputs are known and in canonical form. */
  rules?(inputs: InputValues<I>): readonly Failure[];
  /**
   * The mode of a namespace in which the objects authorize logins. In the other mode, they have no effect. Undefined
   * for objects whose effect does not depend on the mode.
   */
  readonly actsIn?: SshAccessMode;
  /** True if a replacement must delete the old object first, because both objects cannot exist at the same time. */
  readonly deletesFirst?: boolean;
  /**
   * Returns the capabilities that the inputs need and that some servers lack.
   * @param state the state; undefined for a new resource
   */
  needs?(inputs: InputValues<I>, state: Readonly<State<I, O>> | undefined): readonly Need[];
  /**
   * Returns the inputs that require a change although the program did not change them. For example, an expired
   * invitation must be sent again.
   */
  stale?(state: Readonly<State<I, O>>, inputs: InputValues<I>, now: Date): readonly Stale[];
  /**
   * Returns the existing object that conflicts with a create of these inputs, or undefined if no object conflicts. The
   * create can adopt this object.
   * @param isOthers returns true if another resource of the program has claimed the object with this id. `find` never
   *   returns such an object. Only resource types without an identity need this parameter, because only these types can
   *   have several equal objects.
   */
  find?(
    connection: Connection,
    inputs: InputValues<I>,
    isOthers?: (id: string) => boolean,
  ): Promise<Existing<State<I, O>> | undefined>;
  /**
   * True if a create overwrites an existing object instead of failing. The lifecycle then searches for an existing
   * object first.
   */
  readonly overwrites?: boolean;
  create(connection: Connection, inputs: InputValues<I>, origin: Origin): Promise<Existing<State<I, O>>>;
  /** Returns the current object, or undefined if it no longer exists. For an import, `state` is empty. */
  read(
    connection: Connection,
    id: string,
    state: Readonly<Partial<State<I, O>>>,
  ): Promise<Existing<State<I, O>> | undefined>;
  update(
    connection: Connection,
    id: string,
    state: Readonly<State<I, O>>,
    inputs: InputValues<I>,
  ): Promise<State<I, O>>;
  /** Returns a warning for the user about a created object, as a sentence. */
  warning?(state: Readonly<State<I, O>>): string | undefined;
  /** Deletes the object. Keeps the parts of the object that other resources of the program claim. */
  delete(
    connection: Connection,
    id: string,
    state: Readonly<State<I, O>>,
    isClaimed: IsClaimed,
  ): Promise<void>;
}

/**
 * Converts a state that an earlier version wrote to the form of this version. Returns a state of this version
 * unchanged.
 */
export function currentState({ inputs, outputs }: ResourceDefinition, state: Values): Values {
  const renamed = Object.entries(outputs).flatMap(([name, { earlierName }]) =>
    earlierName === undefined || state[name] !== undefined ? [] : [[name, earlierName] as const],
  );
  const isState = Object.keys(outputs).some((name) => state[name] !== undefined);
  if (!isState || renamed.length === 0) return state;
  const converted = renamed.map(([name, earlier]) => ({
    [name]: state[earlier] ?? "",
    [earlier]: inputs[earlier]?.default,
  }));
  return Object.assign({}, state, ...converted);
}

/**
 * Returns the time at which the declared access expired, in RFC 3339. Returns undefined if the access has not expired.
 */
export function endedAt({ inputs }: ResourceDefinition, values: Values, now: Date): string | undefined {
  const name = Object.keys(inputs).find((input) => inputs[input]?.isEnd);
  const end = name === undefined ? undefined : values[name];
  return typeof end === "string" && hasEnded(end, now) ? end : undefined;
}

/** True for the resource type whose objects are namespaces. All other objects belong to a namespace. */
export const isNamespace = ({ inputs }: Pick<ResourceDefinition, "inputs">): boolean => !inputs.tenant;

/** Returns a declaration without the time at which it was made. */
const declarationIn = (owner: Declaration | undefined): Declaration | undefined =>
  owner && { project: owner.project, stack: owner.stack, resource: owner.resource };

/**
 * Returns the object on which a run can store its declaration. Returns undefined if the service stores no declarations
 * for objects of this type, or if several resources share one declaration.
 */
export function claimedObject({ object }: Pick<ResourceDefinition, "object">) {
  const kind = CLAIMED_KINDS.find((claimed) => claimed === object?.kind);
  return object && kind !== undefined && !object.isPart ? { ...object, kind } : undefined;
}

/** Returns a listed object. */
export const listed = <S>(
  id: string,
  name: string,
  state: S,
  { declaredBy, reason, facts }: Partial<Pick<Listed, "declaredBy" | "reason" | "facts">> = {},
): Listed<S> => ({
  id,
  name,
  state,
  declaredBy: declarationIn(declaredBy),
  ...(reason !== undefined && { reason }),
  ...(facts && { facts }),
});
