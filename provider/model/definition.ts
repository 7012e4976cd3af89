import type { SshAccessMode } from "@gatehouse-access/sdk";
import {
  CLAIMED_KINDS,
  type Declaration,
  filter as filterSchema,
  type ObjectKind,
  tagsUpTo,
  tenantId,
} from "@gatehouse-access/sdk/contract";
import { type FieldPath, printedError } from "@gatehouse-access/sdk/errors";
import { mistakenFor, mistakenText, type Subject } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import { type Message, ResourceError, type ResourceFault, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import type { NeededCapability } from "../service/server.ts";
import type { Values } from "../values.ts";
import { hasEnded } from "./validity.ts";

/** An input of a resource: a value that a program declares. */
export interface InputField<S extends z.ZodType = z.ZodType, Required extends boolean = boolean> {
  readonly schema: S;
  readonly description: string;
  readonly required: Required;
  /** The default: the value of an omitted input, of null and of an empty text. */
  readonly default?: z.output<S>;
  /**
   * The value of an object that was created without the input, if the input has no {@link default}. Imported programs
   * omit the input if the object has this value.
   */
  readonly initial?: z.output<S>;
  /** True if a change of the input requires a replacement of the object. */
  readonly replaces: boolean;
  /**
   * True for an instruction to the run, such as `adopt`. An instruction is not part of the object, and diffs ignore it.
   */
  readonly transient: boolean;
  /** True for an input that no request of an update contains, so that only the state changes. */
  readonly isLocal: boolean;
  /**
   * The reason why the effect of a plan on privileges does not depend on the value. The value may then be secret or
   * unknown before the apply. Omitted for decisive inputs: a resource with an unknown decisive input is not evaluated.
   */
  readonly notDecisive?: string;
  /** True if a create sets the input with a second request. Until then, the input has its default. */
  readonly isSetAfterCreate: boolean;
  /** True for the time at which the declared access ends. A create with a time that has passed is an error. */
  readonly isEnd: boolean;
  /** The check of a value that refers to another object. Undefined for other inputs. */
  readonly references?: ReferenceCheck;
  /** Returns the canonical form of a value. Two values with the same canonical form are equal. */
  readonly canonical?: (value: z.output<S>) => z.output<S>;
  /** Returns true if the value refers to the same object as the state, although the two texts differ. */
  readonly sameAs?: (state: Values, value: z.output<S>) => boolean;
  /**
   * True for a secret: it is encrypted in the state and never printed. The service does not return it. Terraform stores
   * states in plaintext, so there the input is write-only and has a version number.
   */
  readonly secret: boolean;
}

/**
 * Returns the error for a value of an input that refers to an object that does not exist; undefined if there is none.
 * Called if the inputs need a capability that the server has.
 * @param value the value in its canonical form
 * @param before the value in the state; undefined for a new resource
 */
export type ReferenceCheck = (
  connection: Connection,
  value: unknown,
  before: unknown,
  context: { readonly tenant: string | undefined; readonly isClaimed: IsClaimed },
) => Promise<Failure | undefined>;

/** An output of a resource: a value that the service sets. */
export interface OutputField<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  readonly description: string;
  /**
   * True for a value that changes without an update, such as the number of devices. An update keeps the state's value.
   * A read also keeps the state's value, unless an input of the object has changed on the service.
   */
  readonly volatile: boolean;
  /**
   * Returns true if an update to these inputs may change the output in this state. A preview then shows the output as
   * unknown.
   * @default returns false: an update keeps the state's value
   */
  readonly mutable?: (state: Values, inputs: Values) => boolean;
  /**
   * The name of the output in states of earlier versions, in which an input of this version had the name. In these
   * states, that input has its default.
   */
  readonly earlierName?: string;
  /** Returns a notice to the user about a capability that the server lacked when the state was written. */
  readonly lacked?: (state: Values) => string | undefined;
  /**
   * True for the output that equals the resource's id. A preview of an update shows the output with its current value.
   */
  readonly isId: boolean;
  /** True for a secret: it is encrypted in the state and never printed. */
  readonly secret: boolean;
  /**
   * The schema of values that a program may choose for the output. Only Terraform uses this schema, because Terraform
   * stores states in plaintext. If the program chooses the secret, the state does not contain the secret.
   */
  readonly choice?: z.ZodType<z.output<S>>;
}

/** The inputs of a resource, by name. */
export type Inputs = Readonly<Record<string, InputField>>;
/** The outputs of a resource, by name. */
export type Outputs = Readonly<Record<string, OutputField>>;

type RequiredKeys<I extends Inputs> = {
  [K in keyof I]: I[K] extends InputField<z.ZodType, true> ? K : never;
}[keyof I];

/** The values of inputs, in their canonical form and with defaults, as `check` returns them. */
export type InputValues<I extends Inputs> = { -readonly [K in RequiredKeys<I>]: z.output<I[K]["schema"]> } & {
  -readonly [K in Exclude<keyof I, RequiredKeys<I>>]?: z.output<I[K]["schema"]>;
};

/** The state of an object on the service: the values of all inputs and outputs. */
export type State<I extends Inputs, O extends Outputs> = {
  -readonly [K in keyof I]: z.output<I[K]["schema"]>;
} & { -readonly [K in keyof O]: z.output<O[K]["schema"]> };

/** Facts that this project's service returns with an object, and that are no part of a state. */
export interface LiveFacts {
  /** The revision of the object's declared fields. */
  readonly revision?: string | undefined;
  /** The resource that declared the object last. */
  readonly declaredBy?: Declaration | undefined;
}

/** An object that exists. */
export interface Existing<S> {
  readonly id: string;
  readonly state: S;
  /** Undefined if the object was not read from the service. Empty on servers of others. */
  readonly live?: LiveFacts | undefined;
}

/** Returns the facts in an object of the service. */
export const liveFacts = ({ revision, declaredBy }: LiveFacts): LiveFacts => ({
  ...(revision !== undefined && { revision }),
  ...(declaredBy && { declaredBy: declarationIn(declaredBy) }),
});

/** The object of a resource type in the service's audit trail and in its declarations. */
export interface ServiceObject {
  readonly kind: ObjectKind;
  /**
   * Returns the id of the object.
   * @default the id of the resource without the namespace
   */
  id?(id: string, state: Values): string;
  /**
   * Returns true if a change of the object added the part that a resource with this id manages. Defined if resources of
   * several programs each manage a part of the object, so that its declaration identifies none of them. The tags of a
   * device are such an object of their attachments.
   */
  isPart?(id: string, change: { readonly before: unknown; readonly after: unknown }): boolean;
}

/** An object of a namespace, with the inputs and outputs that a program's resource for this object would have. */
export interface Listed<S = Values> {
  readonly id: string;
  /**
   * The display name of the object, such as a key's name or a member's e-mail address. Any text is possible, including
   * an empty text.
   */
  readonly name: string;
  readonly state: S;
  /** The reason why no program can declare the object. Omitted if a program can declare it. */
  readonly reason?: string;
  /** Facts about the object that are no fields of its resource type, such as the role of a service account. */
  readonly facts?: Values;
  /**
   * The resource that declared the object last, according to the service. Undefined if the service has no
   * declaration.
   */
  readonly declaredBy?: Declaration | undefined;
}

/** An error in an input. */
export type Failure = ResourceFault;

/**
 * An input that requires an update or replacement although the program did not change it, for example after an
 * invitation expired.
 */
export interface Stale {
  readonly field: string;
  readonly replaces: boolean;
  /** The reason of the change, for the user who runs the program. The text follows the name of the resource. */
  readonly reason?: Message;
}

/** A capability that an input needs. */
export interface Need {
  readonly capability: NeededCapability;
  /** The input, with the path inside its value. Undefined if the resource itself needs the capability. */
  readonly field?: FieldPath;
  /** True if the state already has the value. Checks then skip the capability, unless a setting requires it. */
  readonly isUnchanged?: boolean;
}

/** The data that a create needs in addition to the inputs. */
export interface Origin {
  /** The resource's name in the program. */
  readonly name: string;
  /**
   * The idempotency key of the create. All attempts to create this object share the key, including the attempts of
   * later runs. If later runs cannot compute the key, only the attempts of this run share the key. If another resource
   * has claimed the object that was created with this key, {@link after} returns a different key.
   */
  readonly idempotencyKey: string;
  /**
   * True if the engine passes the resource's name, so that later runs recognize the resource and its {@link
   * idempotencyKey}.
   */
  readonly isNamed: boolean;
  /** The replaced object, with its values in the state. */
  readonly replaced: Existing<Values> | undefined;
  /** The values of outputs that the program chose. See {@link OutputField.choice}. */
  readonly chosen: Values;
  /** The inputs of the replaced object, if the engine did not pass the object itself. */
  readonly unseen: Values | undefined;
  /**
   * Claims the object with this id for this resource, so that no deletion in this run removes the object.
   * @throws DuplicateDeclarationError if another resource of this program has claimed the object
   */
  claim(id: string): void;
  /** Returns true if another resource of this program has claimed the object with this id. */
  isOthers(id: string): boolean;
  /**
   * Returns the same data with another idempotency key. Used if the service returned the object `id` for the current
   * key, and another resource has claimed that object.
   */
  after(id: string): Origin;
}

/** A claim of a resource on an object that no other resource of the program may manage. */
export interface Claim {
  readonly key: string;
  /** The input that an error about this claim refers to. */
  readonly property: string;
  /** True if several resources of the same type may have this claim. */
  readonly shared?: boolean;
}

/** Returns true if a resource of this program has an exclusive claim. `key` is the key of a {@link Claim}. */
export type IsClaimed = (key: string) => boolean;

/**
 * The claims of a resource. They derive from the inputs before the object exists, and from the object's id
 * afterwards.
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
 * The rotation of objects that keep working for some time after their replacement. A create then needs the replaced
 * object, which Terraform does not pass. The Terraform provider therefore plans a replacement as an update, which creates
 * the successor and then deletes the replaced object.
 */
export interface Rotation<S = Values> {
  /** Returns the keys of claims on the object itself, since its id does not identify the object. */
  objectKeys(state: S): readonly string[];
  /**
   * Returns the keys of claims on replaced objects that still work. While a resource has such a claim, no deletion
   * removes the claimed object.
   */
  keeps(state: S): readonly string[];
  /**
   * Adds the replaced object to the state of its successor, if the replaced object could not be deleted yet. The next
   * update deletes the replaced object.
   */
  withReplaced(state: S, replaced: S): S;
}

/**
 * A type of declarative resource. The Pulumi classes, the schemas, the replacement rules and the reference derive from
 * the definition's data. The definition's functions call the service.
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
  /** Undefined if this project's service does not have such objects. */
  readonly object?: ServiceObject;
  readonly identity?: Identity<I>;
  /**
   * The input with tags: either tags that the resource adds to devices, or a filter whose tags must exist before the
   * resource.
   */
  readonly tags?: { readonly gives: keyof I & string } | { readonly needs: keyof I & string };
  /** Undefined if a replaced object is deleted at once. */
  readonly rotation?: Rotation<Readonly<State<I, O>>>;
  /**
   * Returns all objects of this kind in a namespace, in any order. Undefined for resources whose objects a program
   * cannot declare separately.
   */
  list?(connection: Connection, tenant: string): Promise<readonly Listed<State<I, O>>[]>;
  /**
   * Returns the display name of an object, as {@link list} returns it.
   * @default the value `name`
   */
  displayName?(state: Values): string;
  /**
   * Returns the id of the object with this name, or undefined if no object has this name.
   * @default the id of the object with that name in {@link list}
   * @throws Error if several objects have the name
   */
  named?(connection: Connection, tenant: string, name: string): Promise<string | undefined>;
  /** Returns the errors in combinations of inputs. All inputs are known and in canonical form. */
  rules?(inputs: InputValues<I>): readonly Failure[];
  /**
   * The mode of a namespace in which the objects decide about logins. In the other mode, they have no effect. Undefined
   * for objects whose effect does not depend on the mode.
   */
  readonly actsIn?: SshAccessMode;
  /** True if a replacement must delete the old object first, because both objects cannot exist at the same time. */
  readonly deletesFirst?: boolean;
  /**
   * Returns the capabilities of the server that the inputs need, and that some servers lack.
   * @param state the state; undefined for a new resource
   */
  needs?(inputs: InputValues<I>, state: Readonly<State<I, O>> | undefined): readonly Need[];
  /**
   * Returns the inputs that require a change although the program did not change them. An example is an expired
   * invitation, which is sent again.
   */
  stale?(state: Readonly<State<I, O>>, inputs: InputValues<I>, now: Date): readonly Stale[];
  /**
   * Returns the existing object that conflicts with a create of these inputs, if such an object exists. The create can
   * adopt this object.
   * @param isOthers returns true if another resource of the program has claimed the object with this id. The function
   * never returns such an object. Only resource types without an identity need this parameter, because only they can
   * have several equal objects.
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
  /** Returns a warning to the user about a created object, as a sentence. */
  warning?(state: Readonly<State<I, O>>): string | undefined;
  /** Deletes the object, except the parts that other resources of the program claim. */
  delete(
    connection: Connection,
    id: string,
    state: Readonly<State<I, O>>,
    isClaimed: IsClaimed,
  ): Promise<void>;
}

/** The options of an input in addition to its schema. Omitted flags default to false. */
type InputOptions<S extends z.ZodType> = Pick<
  InputField<S>,
  "description" | "canonical" | "sameAs" | "notDecisive" | "references"
> &
  Partial<Pick<InputField<S>, keyof typeof PLAIN>>;

const PLAIN = {
  replaces: false,
  transient: false,
  isLocal: false,
  isSetAfterCreate: false,
  isEnd: false,
  secret: false,
} as const;

/** Returns the names of the inputs and outputs that are secrets. */
export const secretsOf = ({ inputs, outputs }: Pick<ResourceDefinition, "inputs" | "outputs">): string[] =>
  Object.entries({ ...inputs, ...outputs }).flatMap(([name, { secret }]) => (secret ? [name] : []));

/** Defines an input that a program must set. */
export function required<S extends z.ZodType>(schema: S, options: InputOptions<S>): InputField<S, true> {
  return { ...PLAIN, ...options, schema, required: true };
}

/** Defines an input that a program may omit. */
export function optional<S extends z.ZodType>(
  schema: S,
  options: InputOptions<S> & Pick<InputField<S>, "default" | "initial">,
): InputField<S, false> {
  return { ...PLAIN, ...options, schema, required: false };
}

/** Defines an output of a resource. */
export function output<S extends z.ZodType>(
  schema: S,
  options: Pick<OutputField<S>, "description" | "mutable" | "earlierName" | "lacked" | "choice"> &
    Partial<Pick<OutputField<S>, "volatile" | "isId" | "secret">>,
): OutputField<S> {
  return { volatile: false, isId: false, secret: false, ...options, schema };
}

/** Converts a state of an earlier version. Returns a state of this version unchanged. */
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

/** Returns the time at which the declared access ended, in RFC 3339. Undefined if it has not ended. */
export function endedAt({ inputs }: ResourceDefinition, values: Values, now: Date): string | undefined {
  const name = Object.keys(inputs).find((input) => inputs[input]?.isEnd);
  const end = name === undefined ? undefined : values[name];
  return typeof end === "string" && hasEnded(end, now) ? end : undefined;
}

/** True for the kind whose objects are namespaces. All other objects are in a namespace. */
export const isNamespace = ({ inputs }: Pick<ResourceDefinition, "inputs">): boolean => !inputs.tenant;

/** Returns a declaration without its time. */
const declarationIn = (owner: Declaration | undefined): Declaration | undefined =>
  owner && { project: owner.project, stack: owner.stack, resource: owner.resource };

/**
 * Returns the object whose declaration a run can claim. Undefined if objects of this type have no declaration, or share
 * it with other resources.
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

/** A part that several resources share, such as the end of access: adds inputs, and changes calls of functions. */
export type Layer = (definition: ResourceDefinition) => ResourceDefinition;

/**
 * Defines a resource. Resources that can find existing objects get the input `adopt`. The result has the type of every
 * definition, since generic code calls it with the values of any resource.
 * @param layers applied in their order: the last one is called first
 */
export function defineResource<I extends Inputs, O extends Outputs>({
  layers = [],
  ...own
}: ResourceDefinition<I, O> & { readonly layers?: readonly Layer[] }): ResourceDefinition {
  const inputs = own.find ? { ...own.inputs, adopt: adoptInput } : own.inputs;
  const defined = { ...own, inputs } as unknown as ResourceDefinition;
  return layers.reduce((inner, layer) => layer(inner), defined);
}

/**
 * Returns a definition whose states contain further values.
 * @param complete returns the state of an object with these values. `known` are the values in the program or in the
 * state before: empty for a listed object
 */
export function withStates(
  definition: ResourceDefinition,
  complete: (state: Values, known: Values) => Values,
): ResourceDefinition {
  const { find, list, create, read, update } = definition;
  const completed = <E extends { readonly state: Values }>(existing: E, known: Values): E => ({
    ...existing,
    state: complete(existing.state, known),
  });
  return {
    ...definition,
    ...(find && {
      async find(connection, inputs, isOthers) {
        const found = await find(connection, inputs, isOthers);
        return found && completed(found, inputs);
      },
    }),
    ...(list && {
      list: async (connection, tenant) =>
        (await list(connection, tenant)).map((object) => completed(object, {})),
    }),
    create: async (connection, inputs, origin) => completed(await create(connection, inputs, origin), inputs),
    async read(connection, id, state) {
      const found = await read(connection, id, state);
      return found && completed(found, state);
    },
    update: async (connection, id, state, inputs) =>
      complete(await update(connection, id, state, inputs), { ...state, ...inputs }),
  };
}

/** The value of the input `adopt`. */
export type Adopt = boolean | "overwrite" | undefined;

const adoptInput = optional(z.union([z.boolean(), z.literal("overwrite")]), {
  description:
    'Whether to adopt an existing object. `true` adopts the object if every input is equal. `"overwrite"` adopts the object and updates it to match the inputs. By default, an existing object is an error. Changing only `adopt` does not change the resource.',
  transient: true,
});

/**
 * Thrown when the object exists, but a later step of its create failed. The engine keeps the id and state, and the
 * next run updates the object instead of creating another one. If no object was created, the error of the request is
 * thrown instead.
 */
export class UnfinishedError extends Error {
  override readonly name = "UnfinishedError";
  readonly id: string;
  readonly state: Values;
  readonly reason: string;
  /** True if the object existed before the run and was adopted. */
  readonly existedBefore: boolean;

  constructor(id: string, state: Values, cause: unknown, existedBefore = false) {
    super("created, but incomplete", { cause });
    this.existedBefore = existedBefore;
    this.reason = printedError(cause);
    this.id = id;
    this.state = state;
  }
}

/** An example value for each part of an id. */
const EXAMPLES = {
  tenant: "3dd0d1f8-8246-4519-b11a-a3dd33717f65",
  userId: "507f1f77bcf86cd799439011",
  fingerprint: "73:d4:40:0a:6b:59:d2:1e:c0:7f:15:6d:35:e0:c4:91",
  ruleId: "507f191e810c19729de860ea",
  workloadId: "65a1f0c2d3e4b5a697887766",
  policyId: "2f1c3a52-9d0e-4c0b-8a51-6f0f6d3f0a11",
  accountId: "7506174b-8351-4509-8190-622626608dc5",
  installKeyId: "05c5f511c6f0fd667bd9732ddb67f89763b6ae398980aa487a60b6fa36a9aa60",
  uid: "13b0c8ea878e61ff849db69461795006a9594c8f6a6390ce0000100b0c9d7d0a",
  tag: "edge",
  name: "staging",
} as const;

/** A part of an id. Only a name may contain slashes, so a name is always the last part. */
type Part = keyof typeof EXAMPLES;

/** The form of a resource's ids: parts separated by slashes. */
export class IdForm<P extends Part> {
  /** The parts, as in `tenant/uid`. */
  readonly text: string;
  /** An example id of this form. */
  readonly example: string;
  readonly #resource: string;
  readonly #pattern: RegExp;

  constructor(resource: string, ...parts: readonly P[]) {
    this.text = parts.join("/");
    this.example = parts.map((part) => EXAMPLES[part]).join("/");
    this.#resource = resource;
    const groups = parts.map((part) => `(?<${part}>${part === "name" ? ".+" : "[^/]+"})`);
    this.#pattern = new RegExp(`^${groups.join("/")}$`, "s");
  }

  /**
   * Splits an id into its parts.
   * @throws Error with the expected form
   */
  split(id: string): { readonly [Name in P]: string } {
    const groups = this.#pattern.exec(id)?.groups;
    if (!groups) {
      const detail = said`id "${id}": must be ${this.text}`;
      throw new ResourceError(this.#resource, { code: "invalid_id", detail });
    }
    return groups as { readonly [Name in P]: string };
  }
}

/** The input for the namespace that contains an object. */
export const tenantInput = optional(tenantId, {
  description: "The ID of the namespace. Defaults to the namespace in the provider configuration.",
  replaces: true,
  notDecisive: "the steps of a plan are assigned to namespaces separately",
});

/**
 * Returns a schema that rejects CIDR ranges, address ranges and globs. The service would interpret such a text as a
 * regular expression, which matches other texts than the user intends.
 */
export const patternOn = (schema: z.ZodString, subject: Subject): z.ZodString =>
  schema.superRefine((text, context) => {
    const mistaken = mistakenFor(text, subject);
    if (mistaken) context.addIssue({ code: "custom", message: mistakenText(mistaken) });
  });

/** The schema of a property that another property of the same object excludes. */
export const notWith = (other: string) =>
  z.never().optional().describe(`Cannot be combined with \`${other}\`.`);

/** The maximum number of tags of a device or filter. Servers before 0.21 allow three tags. */
const TAGS_MAX = 64;

/** Different tags, in any order. */
export const tagsSchema = tagsUpTo(TAGS_MAX);

/** Returns the capability that a list of tags needs. */
export const needsOfTags = (tags: readonly string[] | undefined, field: FieldPath): readonly Need[] =>
  // An unknown list is a mark, not an array.
  Array.isArray(tags) && tags.length > 3 ? [{ capability: "more than three tags", field }] : [];

/** The input that selects the devices of a key or rule. */
export const filterInput = required(
  z.union(
    [
      z.strictObject({
        hostname: patternOn(filterSchema.shape.hostname.unwrap(), "device").describe(
          "An RE2 pattern that matches the device name. The pattern is not anchored: `web` also matches `web-01`. Must not be set together with `tags`.",
        ),
        tags: notWith("hostname"),
      }),
      z.strictObject({
        tags: tagsSchema.describe(
          "The tags to match. A device matches if it has at least one of these tags. Must contain 1 to 3 tags, or up to 64 tags on servers of version 0.21 or later. Must not be set together with `hostname`.",
        ),
        hostname: notWith("tags"),
      }),
    ],
    { error: "must have exactly one of hostname and tags" },
  ),
  { description: "The devices to match. Must contain exactly one of `hostname` and `tags`." },
);

/** Converts a filter from the service to the form in states. */
export function filterState({
  hostname,
  tags,
}: {
  hostname?: string | undefined;
  tags?: readonly string[] | undefined;
}) {
  // Newer servers send an empty list of tags together with a pattern.
  return hostname || tags === undefined ? { hostname: hostname ?? "" } : { tags: [...tags].sort() };
}

/** Matches the first word of a sentence that explains how to set a field's value, such as `Must` or `Defaults`. */
const ABOUT_SETTING = /^(Must|Defaults|Changing|Use|By default|Recorded)\b/;

/** Returns a field's description for read-only use, without the sentences that explain how to set the field. */
export const readOnlyText = (description: string): string =>
  description
    .split(/(?<=\.)\s+(?=[A-Z])/)
    .filter((sentence) => !ABOUT_SETTING.test(sentence))
    .join(" ");

/** The subset of JSON Schema that the fields of resources and functions use. */
export interface Schema {
  readonly type?: string;
  readonly enum?: readonly (string | number)[];
  readonly anyOf?: readonly Schema[];
  readonly not?: Schema;
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly $ref?: string;
  readonly definitions?: Readonly<Record<string, Schema>>;
}

/** Returns the JSON Schema of the values that a program may set for a field. */
export const jsonSchema = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: "input" }) as Schema;
