type Values = Record<string, unknown>;

/** The type and name of a resource, which an engine sends to the provider. */
export interface ResourceName {
  readonly type: string;
  /** The name of the resource in the program. */
  readonly name: string;
}

/** Options of a run. */
export interface FrontEndOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly stack: string;
  /** The id of the state, which is the same for all resources in it. */
  readonly stateId: string;
  /** Names of the resources that the user replaces with `--replace` of `gatehouse`. */
  readonly replace: readonly string[];
  /** Names of the resources that the engine itself replaces, although the provider does not require the replacement. */
  readonly force?: readonly string[];
}

/** An object as the state contains it: its id and the resource's outputs. */
export interface CreatedObject {
  readonly id: string;
  readonly outputs: Values;
}

/** An object as a refresh reads it. */
interface Read extends CreatedObject {
  /** The inputs that correspond to the object. Undefined if the front end returns none. */
  readonly inputs?: Values;
}

/** The kind of a change. */
interface Difference {
  /** The changed inputs that require a replacement. */
  readonly replaces: readonly string[];
  /** True if the engine deletes the old object before it creates the new one. Terraform always does. */
  readonly deletesFirst?: boolean;
}

/**
 * The provider calls of one engine run. All three front ends (dynamic providers, plugin, Terraform) implement them.
 * Secrets are in plaintext, as in a decrypted state.
 */
export interface FrontEnd {
  check(
    resource: ResourceName,
    olds: Values,
    news: Values,
  ): Promise<{ readonly inputs: Values; readonly failures: readonly string[] }>;
  /** Returns the kind of the change. Returns undefined if nothing has changed. */
  diff(resource: ResourceName, id: string, outputs: Values, inputs: Values): Promise<Difference | undefined>;
  /** @throws StateChangedError if the creation fails but still changes the state */
  create(resource: ResourceName, inputs: Values): Promise<CreatedObject>;
  /** @throws StateChangedError if the update fails but still changes the state */
  update(resource: ResourceName, id: string, outputs: Values, inputs: Values): Promise<Values>;
  read(resource: ResourceName, id: string, outputs: Values): Promise<Read | undefined>;
  delete(resource: ResourceName, id: string, outputs: Values): Promise<void>;
  close(): Promise<void>;
}

/** The error of a step that fails but still changes the engine's state. */
export class StateChangedError extends Error {
  override readonly name = "StateChangedError";
  /** The object in the state after the failed step. Undefined if the resource is no longer in the state. */
  readonly now: CreatedObject | undefined;

  constructor(message: string, now: CreatedObject | undefined) {
    super(message);
    this.now = now;
  }
}
