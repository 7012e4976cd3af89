import { type Declaration, filter as filterSchema, tenantId } from "@gatehouse-access/sdk/contract";
import { printedError } from "@gatehouse-access/sdk/errors";
import { mistakenFor, mistakenText, type Subject } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";

/** An input of a resource: what a program declares. */
export interface InputField<S extends z.ZodType = z.ZodType, Required extends boolean = boolean> {
  readonly schema: S;
  readonly description: string;
  readonly required: Required;
  /** What null, "" and leaving it out mean. */
  readonly default?: z.output<S>;
  /** True when a change replaces the object by a new one. */
  readonly replaces: boolean;
  /** True for an input that says what a run does, and is no part of the object: it is never compared. */
  readonly transient: boolean;
  /** The canonical form of a value. Two values with one canonical form count as the same. */
  readonly canonical?: (value: z.output<S>) => z.output<S>;
  /** True when a value means the object that the state holds, although the two texts differ. */
  readonly sameAs?: (state: Readonly<Record<string, unknown>>, value: z.output<S>) => boolean;
}

/** An output of a resource: what the service decides. */
export interface OutputField<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  readonly description: string;
  /** True for what changes by itself, such as a counter: updates, and reads that find no other change, keep the state's. */
  readonly volatile: boolean;
  /**
   * True in states where an update of the inputs may change it, so that a preview does not promise it.
   * @default never: an update keeps the state's value
   */
  readonly mutable?: (state: Readonly<Record<string, unknown>>) => boolean;
  /** True for the output that is the resource's id, which stays known while a preview plans an update. */
  readonly isId: boolean;
  /** True for what is encrypted in the state, and never shown. */
  readonly secret: boolean;
  /** What a program may choose it to be where the engine keeps states in clear, so that no state holds it. */
  readonly choice?: z.ZodType<z.output<S>>;
}

/** The inputs of a resource, by name. */
export type Inputs = Readonly<Record<string, InputField>>;
/** The outputs of a resource, by name. */
export type Outputs = Readonly<Record<string, OutputField>>;

type RequiredKeys<I extends Inputs> = {
  [K in keyof I]: I[K] extends InputField<z.ZodType, true> ? K : never;
}[keyof I];

/** The values of inputs, in their canonical form and with defaults, as `check` makes them. */
export type InputValues<I extends Inputs> = { -readonly [K in RequiredKeys<I>]: z.output<I[K]["schema"]> } & {
  -readonly [K in Exclude<keyof I, RequiredKeys<I>>]?: z.output<I[K]["schema"]>;
};

/** An object as it is on the service: the values of all inputs and outputs. */
export type State<I extends Inputs, O extends Outputs> = {
  -readonly [K in keyof I]: z.output<I[K]["schema"]>;
} & { -readonly [K in keyof O]: z.output<O[K]["schema"]> };

/** An object that exists. */
export interface Existing<S> {
  readonly id: string;
  readonly state: S;
}

/** An object of a namespace, as a program could declare it. */
export interface Listed<S = Readonly<Record<string, unknown>>> {
  readonly id: string;
  /** By what people know the object: a key's name, a member's e-mail address. Any text, perhaps empty. */
  readonly name: string;
  /** Undefined where no program can declare the object, as {@link reason} then says. */
  readonly state: S | undefined;
  readonly reason?: string;
  /** The resource that declared the object last, by what the service was told; undefined where nothing is known. */
  readonly declaredBy?: Declaration | undefined;
}

/** What is wrong with an input. */
export type Failure = ResourceFault;

/** An input that needs a change although the program did not change it. */
export interface Stale {
  readonly field: string;
  readonly replaces: boolean;
}

/** What a create must know of the resource beside its inputs. */
export interface Origin {
  /** The resource's name in the program. */
  readonly name: string;
  /**
   * The same for every try to make this object, also of later runs; where those could not know it, for every try of
   * this run. When the object passes to another resource afterwards, its key does too.
   */
  readonly idempotencyKey: string;
  /** True where the engine names the resource, so that later runs know it again, and {@link idempotencyKey}. */
  readonly isNamed: boolean;
  /** The object that is replaced, as the state holds it. */
  readonly replaced: Existing<Readonly<Record<string, unknown>>> | undefined;
  /** Values of outputs that the program chose itself; see {@link OutputField.choice}. */
  readonly chosen: Readonly<Record<string, unknown>>;
  /** The inputs of the object that is replaced, where the engine did not show the object itself. */
  readonly unseen: Readonly<Record<string, unknown>> | undefined;
  /**
   * Makes the object with this id this resource's, so that no deletion in this run removes it.
   * @throws DuplicateDeclarationError when another resource of this program has it already
   */
  claim(id: string): void;
  /** True when another resource of this program has the object with this id. */
  isOthers(id: string): boolean;
  /** The same under another idempotency key, for when the service answered this one with the object `id`. */
  after(id: string): Origin;
}

/** A claim of a resource on something that no other resource of the program may manage. */
export interface Claim {
  readonly key: string;
  /** The input that errors name. */
  readonly property: string;
  /** True when several resources of one definition may claim it. */
  readonly shared?: boolean;
}

/** True when a resource of this program claims this for itself alone; `key` is that of a {@link Claim}. */
export type IsClaimed = (key: string) => boolean;

/** Which claims a resource has: before its object is made by its inputs, afterwards by the object's id. */
export interface Identity<I extends Inputs = Inputs> {
  /** The inputs that decide about the claims. */
  readonly fields: readonly (keyof I & string)[];
  ofInputs(inputs: InputValues<I>): readonly Claim[];
  /** @default a claim on the id itself */
  ofId?(id: string): readonly Claim[];
}

/**
 * One declarative resource. Pulumi classes, schemas, replacement rules and the reference derive from its data; its
 * functions talk to the service.
 */
export interface ResourceDefinition<I extends Inputs = Inputs, O extends Outputs = Outputs> {
  readonly name: string;
  readonly description: string;
  readonly inputs: I;
  readonly outputs: O;
  /** The form of the ids, which an import takes too. */
  readonly id: Pick<IdForm<never>, "text" | "example">;
  /** What {@link id} does not say of the ids. */
  readonly idNote?: string;
  readonly identity?: Identity<I>;
  /** The input with tags that the resource gives to devices, or with a filter whose tags must be there before it. */
  readonly tags?: { readonly gives: keyof I & string } | { readonly needs: keyof I & string };
  /** Keys of claims on other objects, which must stay as long as they are in this state. */
  keeps?(state: Readonly<State<I, O>>): readonly string[];
  /**
   * Keys of claims on the object itself, where its id does not tell which one it is.
   * @default the keys of the claims by its id
   */
  objectKeys?(state: Readonly<State<I, O>>): readonly string[];
  /** All objects of a namespace that are of this kind, in any order; left out where a program declares none as such. */
  list?(connection: Connection, tenant: string): Promise<readonly Listed<State<I, O>>[]>;
  /**
   * The id of the object that people know by this name; undefined where there is none.
   * @default the one of that name in {@link list}
   * @throws Error where several have it
   */
  named?(connection: Connection, tenant: string, name: string): Promise<string | undefined>;
  /**
   * The state with the object that it replaced, where that could not be removed yet: the next update removes it. A kind
   * that has this carries on from what it replaces. Engines that show a create nothing of that object make the new one
   * in an update.
   */
  withReplaced?(state: Readonly<State<I, O>>, replaced: Readonly<State<I, O>>): State<I, O>;
  /** What is wrong with several inputs together. All values are known and canonical. */
  rules?(inputs: InputValues<I>): readonly Failure[];
  /** Inputs that need a change although the program did not change them, such as one that sends an invitation again. */
  stale?(state: Readonly<State<I, O>>, inputs: InputValues<I>, now: Date): readonly Stale[];
  /**
   * The object that is in the way of a create with these inputs, if there is one. Such objects can be adopted.
   * @param isOthers true for an object that another resource of the program has; without an identity there may be several
   * equal ones, of which it is none of those
   */
  find?(
    connection: Connection,
    inputs: InputValues<I>,
    isOthers?: (id: string) => boolean,
  ): Promise<Existing<State<I, O>> | undefined>;
  /**
   * True when a create overwrites the object that it meets, and the service does not refuse: it is looked for first.
   */
  readonly overwrites?: boolean;
  create(connection: Connection, inputs: InputValues<I>, origin: Origin): Promise<Existing<State<I, O>>>;
  /** The object as it is now; undefined when it is gone. For an import, `state` is empty. */
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
  /** What whoever runs the program should know of an object that was made, as a sentence. */
  warning?(state: Readonly<State<I, O>>): string | undefined;
  /** Removes the object, without the parts that other resources of the program claim. */
  delete(
    connection: Connection,
    id: string,
    state: Readonly<State<I, O>>,
    isClaimed: IsClaimed,
  ): Promise<void>;
}

/** What an input is made of beside its schema; `replaces` and `transient` are false where they are left out. */
type InputOptions<S extends z.ZodType> = Pick<InputField<S>, "description" | "canonical" | "sameAs"> &
  Partial<Pick<InputField<S>, "replaces" | "transient">>;

/** An input that a program must give. */
export function required<S extends z.ZodType>(schema: S, options: InputOptions<S>): InputField<S, true> {
  return { replaces: false, transient: false, ...options, schema, required: true };
}

/** An input that a program may leave out. */
export function optional<S extends z.ZodType>(
  schema: S,
  options: InputOptions<S> & { readonly default?: z.output<S> },
): InputField<S, false> {
  return { replaces: false, transient: false, ...options, schema, required: false };
}

/** An output of a resource. */
export function output<S extends z.ZodType>(
  schema: S,
  options: {
    readonly description: string;
    readonly volatile?: boolean;
    readonly mutable?: OutputField["mutable"];
    readonly isId?: boolean;
    readonly secret?: boolean;
    readonly choice?: z.ZodType<z.output<S>>;
  },
): OutputField<S> {
  return { volatile: false, isId: false, secret: false, ...options, schema };
}

/** An object as a program could declare it; where its state cannot be made of what the service says, with the reason. */
export function listed<S>(
  id: string,
  name: string,
  state: () => S,
  owner?: Declaration | undefined,
): Listed<S> {
  const declaredBy = owner && { project: owner.project, stack: owner.stack, resource: owner.resource };
  try {
    return { id, name, declaredBy, state: state() };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { id, name, declaredBy, state: undefined, reason };
  }
}

/** Defines a resource. One that can find existing objects gets the input `adopt`. */
export function defineResource<I extends Inputs, O extends Outputs>(
  definition: ResourceDefinition<I, O>,
): ResourceDefinition<I, O> {
  if (!definition.find) return definition;
  return { ...definition, inputs: { ...definition.inputs, adopt: adoptInput } };
}

/** The value of the input `adopt`. */
export type Adopt = boolean | "overwrite" | undefined;

const adoptInput = optional(z.union([z.boolean(), z.literal("overwrite")]), {
  description:
    'What to do when the object is there already: true takes it over if it is equal in every input, "overwrite" also changes it. Left out, that is an error. Never a change by itself.',
  transient: true,
});

/**
 * Thrown when an object is there, but a later step of its create failed: the engine then keeps id and state, and the
 * next run updates the object instead of making another one. When nothing was made, the error of the request is thrown.
 */
export class UnfinishedError extends Error {
  override readonly name = "UnfinishedError";
  readonly id: string;
  readonly state: Readonly<Record<string, unknown>>;
  readonly reason: string;
  /** True for an object that was there before, and was taken over. */
  readonly wasThere: boolean;

  constructor(id: string, state: Readonly<Record<string, unknown>>, cause: unknown, wasThere = false) {
    super("made, but not completed", { cause });
    this.wasThere = wasThere;
    this.reason = printedError(cause);
    this.id = id;
    this.state = state;
  }
}

/** A value of each part that ids have, for examples. */
const EXAMPLES = {
  tenant: "3dd0d1f8-8246-4519-b11a-a3dd33717f65",
  userId: "507f1f77bcf86cd799439011",
  fingerprint: "73:d4:40:0a:6b:59:d2:1e:c0:7f:15:6d:35:e0:c4:91",
  ruleId: "507f191e810c19729de860ea",
  uid: "13b0c8ea878e61ff849db69461795006a9594c8f6a6390ce0000100b0c9d7d0a",
  tag: "edge",
  name: "staging",
} as const;

/** A part of an id. Only a name may hold slashes; it comes last. */
type Part = keyof typeof EXAMPLES;

/** The form of a resource's ids: parts with slashes between them. */
export class IdForm<P extends Part> {
  /** The parts, as in `tenant/uid`. */
  readonly text: string;
  /** An id of this form. */
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
   * The parts of an id.
   * @throws Error naming the form that is expected
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

/** The input for the namespace that an object is in. */
export const tenantInput = optional(tenantId, {
  description: "Namespace id. Default: the namespace of the stack, or of the provider block.",
  replaces: true,
});

/** A pattern that is no CIDR, no range of addresses and no glob: as regular expressions, these match something else. */
export const patternOn = (schema: z.ZodString, subject: Subject): z.ZodString =>
  schema.superRefine((text, context) => {
    const mistaken = mistakenFor(text, subject);
    if (mistaken) context.addIssue({ code: "custom", message: mistakenText(mistaken) });
  });

const notBeside = (other: string) => z.never().optional().describe(`Not beside ${other}.`);

/** The input for the devices that a key or rule is for. */
export const filterInput = required(
  z.union(
    [
      z.strictObject({
        hostname: patternOn(filterSchema.shape.hostname.unwrap(), "device").describe(
          "Pattern (RE2, not anchored) on the device's name.",
        ),
        tags: notBeside("hostname"),
      }),
      z.strictObject({
        tags: filterSchema.shape.tags.unwrap().describe("Tags of which a device has at least one; 1 to 3."),
        hostname: notBeside("tags"),
      }),
    ],
    { error: "must have exactly one of hostname and tags" },
  ),
  { description: "Which devices: by name or by tags, one of the two." },
);

/** A filter that the service sent, as a state holds it. */
export function filterState({
  hostname,
  tags,
}: {
  hostname?: string | undefined;
  tags?: string[] | undefined;
}) {
  // Newer servers send empty tags beside a pattern.
  return hostname || tags === undefined ? { hostname: hostname ?? "" } : { tags: [...tags].sort() };
}

/** A JSON Schema, as far as the fields of resources and functions have it. */
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

/** The JSON Schema of what a program may give for a field. */
export const jsonSchema = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: "input" }) as Schema;
