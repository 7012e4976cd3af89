import { z } from "zod";
import type { Connection } from "./connection.ts";
import type { IdForm } from "./idForm.ts";

/** An input of a resource: what a program declares. */
export interface InputField<S extends z.ZodType = z.ZodType, Required extends boolean = boolean> {
  readonly schema: S;
  readonly description: string;
  readonly required: Required;
  /** What leaving it out, null and "" mean; also where the service has a value of its own. */
  readonly default?: z.output<S>;
  /** A change makes a new object. */
  readonly replaces: boolean;
  /** Steers a run and is no part of the object: never compared. */
  readonly transient: boolean;
  /** Canonical form; idempotent. Two values with one canonical form are the same value. */
  readonly canonical?: (value: z.output<S>) => z.output<S>;
  /** True when the new value means the same object as the state although the text differs. */
  readonly sameAs?: (state: Readonly<Record<string, unknown>>, value: z.output<S>) => boolean;
}

/** An output of a resource: what the service decides. */
export interface OutputField<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  readonly description: string;
  /** Changes by itself (a counter, say): alone it is no drift, so a read keeps the state's value. */
  readonly volatile: boolean;
  /** Equal to the resource's id, which stays known while a preview plans an update. */
  readonly isId: boolean;
  /** Encrypted in the state, and never shown. */
  readonly secret: boolean;
}

export type Inputs = Readonly<Record<string, InputField>>;
export type Outputs = Readonly<Record<string, OutputField>>;

type RequiredKeys<I extends Inputs> = {
  [K in keyof I]: I[K] extends InputField<z.ZodType, true> ? K : never;
}[keyof I];

/** Inputs after `check`: canonical, with defaults. */
export type InputValues<I extends Inputs> = { -readonly [K in RequiredKeys<I>]: z.output<I[K]["schema"]> } & {
  -readonly [K in Exclude<keyof I, RequiredKeys<I>>]?: z.output<I[K]["schema"]>;
};

/** What is known of an object that exists: every input as it is on the service, and the outputs. */
export type State<I extends Inputs, O extends Outputs> = {
  -readonly [K in keyof I]: z.output<I[K]["schema"]>;
} & { -readonly [K in keyof O]: z.output<O[K]["schema"]> };

export interface Existing<S> {
  readonly id: string;
  readonly state: S;
}

/** A rule over several inputs that a program broke. */
export interface Failure {
  readonly property: string;
  readonly reason: string;
}

/** A field that needs a change although no program made one. */
export interface Stale {
  readonly field: string;
  readonly replaces: boolean;
}

/** Where a create comes from. */
export interface Origin {
  /** The resource's name in the program. */
  readonly name: string;
  /**
   * The same for each try to make this object, or where nothing tells objects apart, for each try of this run. The
   * object may pass to another resource afterwards, and its creation's key with it.
   */
  readonly idempotencyKey: string;
  /** What the state held before a replacement. */
  readonly replaced: Existing<Readonly<Record<string, unknown>>> | undefined;
  /** The inputs of an object that is replaced, where an engine showed no more of it. */
  readonly unseen: Readonly<Record<string, unknown>> | undefined;
  /**
   * Says that the object with this id is this resource's, so that no deletion in this run may remove it.
   * @throws Error naming the resource of this program that has it already
   */
  claim(id: string): void;
  /** True when another resource of this program has the object with this id. */
  isOthers(id: string): boolean;
  /** The same create under another idempotency key, where the service answered this one with `id`. */
  after(id: string): Origin;
}

/** A claim on something that two resources of one program must not both manage. */
export interface Claim {
  readonly key: string;
  /** The input that an error names. */
  readonly property: string;
  /** Resources of one definition may share it. */
  readonly shared?: boolean;
}

/** True when a resource of this program claims this for itself alone, by the key of a {@link Claim}. */
export type IsClaimed = (key: string) => boolean;

/** What inputs, and later an id, make a resource the one that manages. */
export interface Identity<I extends Inputs = Inputs> {
  /** The inputs that it depends on. */
  readonly fields: readonly (keyof I & string)[];
  ofInputs(inputs: InputValues<I>): readonly Claim[];
  /** Default: the id itself. */
  ofId?(id: string): readonly Claim[];
}

/**
 * One declarative resource: the only description that Pulumi classes, schemas, replacement rules and the
 * reference derive from. Its functions talk to the service; everything else about it is data.
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
  /** Inputs that hold tags: what it gives devices, and what its filter needs the namespace to know. */
  readonly tags?: { readonly gives: keyof I & string } | { readonly needs: keyof I & string };
  /** Keys of claims on other objects that live as long as this state says, whoever had them. */
  keeps?(state: Readonly<State<I, O>>): readonly string[];
  /** Rules over several inputs, all known and canonical. */
  rules?(inputs: InputValues<I>): readonly Failure[];
  /** Fields to change although no program changed them, for instance an invitation to send again. */
  stale?(state: Readonly<State<I, O>>, inputs: InputValues<I>, now: Date): readonly Stale[];
  /** The object that a create with these inputs would meet, if there is one. Such objects can be adopted. */
  find?(connection: Connection, inputs: InputValues<I>): Promise<Existing<State<I, O>> | undefined>;
  /** A create writes over what it meets, without a word of the service: look first. */
  readonly overwrites?: boolean;
  create(connection: Connection, inputs: InputValues<I>, origin: Origin): Promise<Existing<State<I, O>>>;
  /** The object as it is now; undefined when it is gone. `state` is empty at an import. */
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
  /** Removes the object, but for the parts of it that resources of the program claim. */
  delete(
    connection: Connection,
    id: string,
    state: Readonly<State<I, O>>,
    isClaimed: IsClaimed,
  ): Promise<void>;
}

interface InputOptions<S extends z.ZodType> {
  readonly description: string;
  readonly replaces?: boolean;
  readonly transient?: boolean;
  readonly canonical?: (value: z.output<S>) => z.output<S>;
  readonly sameAs?: (state: Readonly<Record<string, unknown>>, value: z.output<S>) => boolean;
}

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

export function output<S extends z.ZodType>(
  schema: S,
  options: {
    readonly description: string;
    readonly volatile?: boolean;
    readonly isId?: boolean;
    readonly secret?: boolean;
  },
): OutputField<S> {
  return { volatile: false, isId: false, secret: false, ...options, schema };
}

/** Gives a definition's functions their types, and what can be found the input that takes it over. */
export function defineResource<I extends Inputs, O extends Outputs>(
  definition: ResourceDefinition<I, O>,
): ResourceDefinition<I, O> {
  if (!definition.find) return definition;
  return { ...definition, inputs: { ...definition.inputs, adopt: adoptInput } };
}

/** What `adopt` allows. */
export type Adopt = boolean | "overwrite" | undefined;

const adoptInput = optional(z.union([z.boolean(), z.literal("overwrite")]), {
  description:
    'What to do when the object is there already: true takes it over if it is equal in every input, "overwrite" also changes it. Left out, that is an error. Never a change by itself.',
  transient: true,
});

/**
 * The object was made, but a later step failed: an engine keeps id and state, and the next run updates it
 * instead of making a twin.
 */
export class UnfinishedError extends Error {
  override readonly name = "UnfinishedError";
  readonly id: string;
  readonly state: Readonly<Record<string, unknown>>;
  readonly reason: string;

  constructor(id: string, state: Readonly<Record<string, unknown>>, cause: unknown) {
    super("made, but not completed", { cause });
    this.reason = cause instanceof Error ? cause.message : String(cause);
    this.id = id;
    this.state = state;
  }
}
