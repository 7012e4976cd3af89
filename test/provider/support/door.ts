type Values = Record<string, unknown>;

/** The type and name of a resource, which an engine sends to a provider. */
export interface ResourceName {
  readonly type: string;
  /** Its name in the program. */
  readonly name: string;
}

/** Options of a run. */
export interface DoorOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly stack: string;
  /** The id that all resources of one state share. */
  readonly stateId: string;
  /** Names of the resources in the `--replace` options of `gatehouse`. */
  readonly replace: readonly string[];
  /** Names of the resources that the engine replaces without the provider's request. */
  readonly force?: readonly string[];
}

/** An object in a state. */
export interface Made {
  readonly id: string;
  readonly outputs: Values;
}

/** Calls of a provider's front end in one run of an engine. Values are plain, like those of a decrypted state. */
export interface FrontDoor {
  check(
    resource: ResourceName,
    olds: Values,
    news: Values,
  ): Promise<{ readonly inputs: Values; readonly failures: readonly string[] }>;
  /** Returns undefined without changes, and otherwise the inputs that require a replacement. */
  diff(
    resource: ResourceName,
    id: string,
    outputs: Values,
    inputs: Values,
  ): Promise<readonly string[] | undefined>;
  /** @throws StateChangedError if the creation fails but changes the state */
  create(resource: ResourceName, inputs: Values): Promise<Made>;
  /** @throws StateChangedError as {@link create} */
  update(resource: ResourceName, id: string, outputs: Values, inputs: Values): Promise<Values>;
  read(resource: ResourceName, id: string, outputs: Values): Promise<Made | undefined>;
  delete(resource: ResourceName, id: string, outputs: Values): Promise<void>;
  close(): Promise<void>;
}

/** The error of a failed step that changes the engine's state. */
export class StateChangedError extends Error {
  override readonly name = "StateChangedError";
  /** The object in the state after the step; undefined if it has none. */
  readonly now: Made | undefined;

  constructor(message: string, now: Made | undefined) {
    super(message);
    this.now = now;
  }
}
