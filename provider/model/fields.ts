import { tenantId } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { ResourceFault } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import type { Values } from "../values.ts";

/** An input of a resource: a value that a program declares. */
export interface InputField<S extends z.ZodType = z.ZodType, Required extends boolean = boolean> {
  readonly schema: S;
  readonly description: string;
  readonly required: Required;
  /** The default: the value if the input is omitted, null or an empty string. */
  readonly default?: z.output<S>;
  /**
   * The initial value: an object that was created without the input has this value. Set only if the input has no {@link
   * default}. Imported programs omit the input if the object has this value.
   */
  readonly initial?: z.output<S>;
  /** True if a change to the input requires a replacement of the object. */
  readonly replaces: boolean;
  /**
   * True for an instruction to the run, such as `adopt`. An instruction is not part of the object, and diffs ignore it.
   */
  readonly transient: boolean;
  /** True for an input that updates never send to the service. A change to the input only changes the state. */
  readonly isLocal: boolean;
  /**
   * The reason why the privileges after a plan do not depend on this input. The input may then be secret, or unknown
   * before the apply. Omitted for decisive inputs, which determine privileges. If a decisive input is unknown, the
   * resource is not evaluated.
   */
  readonly notDecisive?: string;
  /**
   * True if a create sets the input with a second request. Until this request, the input has its default on the
   * service.
   */
  readonly isSetAfterCreate: boolean;
  /** True for the time at which the declared access expires. If this time has passed, a create fails. */
  readonly isEnd: boolean;
  /** The check of a value that refers to another object. Omitted for all other inputs. */
  readonly references?: ReferenceCheck;
  /** The remedy in errors about an invalid value, as an imperative sentence. */
  readonly remedy?: string;
  /** Returns the canonical form of a value. Two values with the same canonical form are equal. */
  readonly canonical?: (value: z.output<S>) => z.output<S>;
  /** Returns true if the value refers to the same object as the different value in the state. */
  readonly sameAs?: (state: Values, value: z.output<S>) => boolean;
  /**
   * True for a secret: the secret is encrypted in the state and never printed. The service does not return the secret.
   * Terraform stores states in plaintext, so in Terraform the input is write-only and has a version number.
   */
  readonly secret: boolean;
}

/**
 * Checks that the object exists to which the value refers. Returns an error if the object does not exist, or undefined
 * if it exists. Called only if the server has the capabilities that the inputs need.
 * @param value the value in its canonical form
 * @param before the value in the state; undefined for a new resource
 */
export type ReferenceCheck = (
  connection: Connection,
  value: unknown,
  before: unknown,
  context: {
    readonly tenant: string | undefined;
    /** Returns true if a resource of this program has an exclusive claim with this key. */
    isClaimed(key: string): boolean;
  },
) => Promise<ResourceFault | undefined>;

/** An output of a resource: a value that the service sets. */
export interface OutputField<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  readonly description: string;
  /**
   * True for a value that can change without an update, such as the number of devices. An update keeps the value in the
   * state. A read keeps it too, unless an input of the object changed on the service.
   */
  readonly volatile: boolean;
  /**
   * Returns true if an update from this state to these inputs may change the output. A preview then shows the output as
   * unknown.
   * @default returns false: an update keeps the value in the state
   */
  readonly mutable?: (state: Values, inputs: Values) => boolean;
  /**
   * The name that this output had in states that earlier versions wrote. In this version, an input has that name. The
   * conversion of such a state therefore moves the output's value to the new name, and sets the input to its default.
   */
  readonly earlierName?: string;
  /**
   * Returns a notice to the user about a capability that the server lacked when the state was written. Returns
   * undefined if the server did not lack it.
   */
  readonly lacked?: (state: Values) => string | undefined;
  /** True for the output that equals the resource's id. It keeps its current value in the preview of an update. */
  readonly isId: boolean;
  /** True for a secret output. The value is encrypted in the state and never printed. */
  readonly secret: boolean;
  /**
   * The schema of the values that a program may choose for the output. Only Terraform uses this schema. It stores
   * states in plaintext, but a secret that the program chooses is not in the state.
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

/** The options of an input in addition to its schema. Omitted flags default to false. */
type InputOptions<S extends z.ZodType> = Pick<
  InputField<S>,
  "description" | "canonical" | "sameAs" | "notDecisive" | "references" | "remedy"
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

/** Returns the names of the inputs and outputs that contain secrets. */
export const secretsOf = ({
  inputs,
  outputs,
}: {
  readonly inputs: Inputs;
  readonly outputs: Outputs;
}): string[] =>
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

/** The input that contains the id of an object's namespace. */
export const tenantInput = optional(tenantId, {
  description: "The ID of the namespace. Defaults to the namespace in the provider configuration.",
  replaces: true,
  notDecisive: "the steps of a plan are assigned to namespaces separately",
  remedy: "run gatehouse namespace list, which prints the ids",
});
