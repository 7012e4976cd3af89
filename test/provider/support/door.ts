type Values = Record<string, unknown>;

/** A resource, as an engine names it to a provider. */
export interface Named {
  readonly type: string;
  /** Its name in the program. */
  readonly name: string;
}

/** What a run begins with. */
export interface DoorOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly stack: string;
  /** The id by which resources of one state know it. */
  readonly stateId: string;
  /** Names of the resources that `gatehouse` was told to replace. */
  readonly replace: readonly string[];
  /** Names of the resources that the engine replaces although no provider says so. */
  readonly force?: readonly string[];
}

/** An object, as a state has it. */
export interface Made {
  readonly id: string;
  readonly outputs: Values;
}

/** The way into the definitions for one run of an engine. Values are plain, as a state's are when decrypted. */
export interface FrontDoor {
  check(
    resource: Named,
    olds: Values,
    news: Values,
  ): Promise<{ readonly inputs: Values; readonly failures: readonly string[] }>;
  /** Undefined where nothing changes; else the inputs that make it a replacement. */
  diff(resource: Named, id: string, outputs: Values, inputs: Values): Promise<readonly string[] | undefined>;
  /** @throws StateChangedError where it failed, and the state is another one all the same */
  create(resource: Named, inputs: Values): Promise<Made>;
  /** @throws StateChangedError as {@link create} */
  update(resource: Named, id: string, outputs: Values, inputs: Values): Promise<Values>;
  read(resource: Named, id: string, outputs: Values): Promise<Made | undefined>;
  delete(resource: Named, id: string, outputs: Values): Promise<void>;
  close(): Promise<void>;
}

/** A step failed, after which an engine keeps another state than before. */
export class StateChangedError extends Error {
  override readonly name = "StateChangedError";
  /** What the state has from then on; undefined where that is nothing. */
  readonly now: Made | undefined;

  constructor(message: string, now: Made | undefined) {
    super(message);
    this.now = now;
  }
}
