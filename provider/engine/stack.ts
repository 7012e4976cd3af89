import type { EngineEvent, EngineName, Plan, Result } from "./model.ts";
import type { TargetOptions } from "./targets.ts";

/** Options of a preview. */
export type PreviewOptions = TargetOptions & {
  /** Read the real objects first. */
  refresh?: boolean;
  /** Urns, with wildcards, of resources that are replaced even where nothing changed. */
  replace?: readonly string[];
  /** Every step of the plan, the unchanged ones too, tells what the resource is before and after. Default: false. */
  values?: boolean;
  /** False: a missing stack is a StackSelectionError instead of being made. Default: true. */
  create?: boolean;
};

/** Options of the runs that change something. */
export type Confirmable = {
  /** Asked with the plan before anything is changed, if anything is to be; false ends the run as cancelled. */
  confirm?: (plan: Plan) => Promise<boolean>;
};

/** Options of an update. */
export type UpOptions = PreviewOptions &
  Confirmable & {
    /**
     * The run stops where it would do something else than the plan that was confirmed; that is asked for in any case.
     * Default: false.
     */
    held?: boolean;
    /** The program is run once, and nothing is asked. Default: false. */
    skipPreview?: boolean;
  };

/** Options of a refresh. */
export type RefreshRunOptions = TargetOptions &
  Confirmable & {
    /** Forget creations that an earlier run left in flight, once they were looked after. */
    clearPendingCreates?: boolean;
  };

/** Options of a destruction. */
export type DestroyOptions = TargetOptions &
  Confirmable & {
    /** Read the real objects first. */
    refresh?: boolean;
  };

/** How a stack is opened. */
export type StackOptions = {
  /** Folder with Pulumi.yaml. Default: the current one. */
  folder?: string;
  /** Default: PULUMI_STACK, or the only stack there is. */
  stack?: string;
  /** Default: the CLI where it is on the PATH; without one, NoEngineError. */
  engine?: EngineName;
  /** Environment of the program and of the provider. Default: this process's. */
  env?: NodeJS.ProcessEnv;
  onEvent?: (event: EngineEvent) => void;
  /** How many objects may be worked on at once. Default 16. */
  parallel?: number;
  /** Aborting it ends a run as Ctrl-C does: steps in flight are finished, nothing more is started. */
  signal?: AbortSignal;
};

/** A resource as a state holds it. */
export type StateResource = {
  readonly urn: string;
  readonly type: string;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly outputs?: Readonly<Record<string, unknown>>;
};

/**
 * One stack, ready to run. The runs reject with UpdateFailedError, ProgramError or CancelledError (all of them with
 * the result so far), LockedError, UnsupportedError, BackendError, PassphraseError or, for targets that do not fit
 * the stack or each other, EngineError.
 */
export type Stack = {
  engine: EngineName;
  project: string;
  stack: string;
  /** What `up` would do; nothing is changed, except that a missing stack is made unless `create` is false. */
  preview(options?: PreviewOptions): Promise<Plan>;
  /** Makes what the program says real, after a preview; where that finds nothing to do or to write, it is all. */
  up(options?: UpOptions): Promise<Result>;
  /** Brings the state up to what really is. */
  refresh(options?: RefreshRunOptions): Promise<Result>;
  /** Deletes all the stack's resources, after a plan. */
  destroy(options?: DestroyOptions): Promise<Result>;
  /** What differs between the state and what really is; nothing is changed. */
  drift(options?: TargetOptions): Promise<Result>;
  /**
   * The stack's configuration as plain text by `namespace:key`, with secrets decrypted: not for showing. A missing
   * stack is not made. Rejects with PassphraseError, StackSelectionError, or what reading its files throws.
   */
  config(): Promise<ReadonlyMap<string, string>>;
  /** Sets a value of that configuration, in plain text; a missing stack is made. */
  setConfig(key: string, text: string): Promise<void>;
  /** What the state holds, with secrets encrypted; nothing where the stack is missing. */
  resources(): Promise<readonly StateResource[]>;
  /** Encrypts a text as the stack's secrets are: with its passphrase, or by its secrets provider. */
  encrypt(text: string): Promise<string>;
  /** The text again. Throws PassphraseError where it was encrypted with another key, or changed since. */
  decrypt(encrypted: string): Promise<string>;
};
