import { STATE_IDENTITY_TYPE } from "../urn.ts";

/** The engine that runs a stack. */
export type EngineName = "cli" | "embedded";

/** The source of a result: an engine, or Terraform for a Terraform plan. */
export type Runner = EngineName | "terraform";

/** The command of a run. */
export type Command = "preview" | "up" | "refresh" | "destroy" | "drift";

/** The operation on one resource. `import`: the resource adopts an existing object. */
export type StepOp = "create" | "update" | "replace" | "delete" | "import" | "same";

/** A value for display. A secret is the text `[secret]`; a value that is not known yet is `[unknown]`. */
export type Shown = null | boolean | number | string | Shown[] | { [key: string]: Shown };

/** A type with writable fields, for code that builds an object step by step. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Returns true if a value is or contains one of these words. */
export function holds(value: Shown | undefined, ...words: readonly ("[unknown]" | "[secret]")[]): boolean {
  if (Array.isArray(value)) return value.some((item) => holds(item, ...words));
  if (typeof value === "object" && value !== null)
    return Object.values(value).some((item) => holds(item, ...words));
  return words.some((word) => word === value);
}

/** One changed field. `old` or `new` is omitted if it has no value. */
export interface FieldChange {
  /** The names of the properties, starting with the outermost property, separated by dots. */
  readonly path: string;
  readonly old?: Shown;
  readonly new?: Shown;
  /** True if a refresh or drift found a difference only in the outputs: the program sets no input with this name. */
  readonly outputOnly?: true;
}

/** The properties of a resource at one time. */
export interface ResourceValues {
  readonly inputs: Record<string, Shown>;
  readonly outputs: Record<string, Shown>;
  /** True if the object remains when the resource is deleted (`retainOnDelete`). */
  readonly retained?: true;
  /**
   * The inputs of the resource's provider instance, if the engine reports them. A secret input is a credential that the
   * program sets only for this instance.
   */
  readonly provider?: Readonly<Record<string, Shown>>;
}

/** A planned or executed operation on one resource, as commands print it. */
export interface ShownStep {
  readonly op: StepOp;
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** The provider's id, if known. */
  readonly id?: string;
  /** Changed inputs; for a refresh or drift, the inputs and outputs that differ from the state. */
  readonly fields: readonly FieldChange[];
  /** For a replacement: the fields that force the replacement. */
  readonly replaceKeys?: readonly string[];
  /**
   * True for a deletion or a replacement whose old object remains as an unmanaged object: `retainOnDelete`, or
   * Terraform's `destroy = false`.
   */
  readonly retained?: true;
  /** The error if the step failed. */
  readonly error?: string;
}

/** One resource in a plan or a result. */
export interface Step extends ShownStep {
  /**
   * In a plan with values: the resource in the state, or the resource that a refresh read. A provider may read only
   * outputs. Omitted if the resource does not exist yet.
   */
  readonly before?: ResourceValues;
  /**
   * In a plan with values: the planned resource. The outputs of a created or changed resource equal its inputs, as in a
   * preview of the program; other outputs are not known before the run. Omitted if the resource will be deleted.
   */
  readonly after?: ResourceValues;
}

/** A message of the program, a provider or the engine. */
export interface Diagnostic {
  readonly severity: "debug" | "info" | "warning" | "error";
  readonly message: string;
  readonly urn?: string;
}

/** The message of an update that has nothing to do, and nothing to write to the state. */
export const NOTHING_TO_DO: Diagnostic = {
  severity: "info",
  message: "No changes: program, state and outputs are the same.",
};

/** Number of resources for each operation. Default providers are not counted. */
export type Summary = Record<StepOp, number>;

/** The result of a run, with the same fields for all engines. */
export interface Result {
  readonly engine: Runner;
  readonly command: Command;
  readonly project: string;
  readonly stack: string;
  readonly ok: boolean;
  /** True if the steps are only planned and nothing was changed. */
  readonly planned: boolean;
  /** True if this run created the stack. */
  readonly createdStack: boolean;
  readonly steps: readonly Step[];
  readonly summary: Summary;
  /** The stack's outputs, with secrets masked. */
  readonly outputs: Record<string, Shown>;
  readonly diagnostics: readonly Diagnostic[];
  readonly durationMs: number;
}

/** The result of a preview. */
export type Plan = Result;

interface Work {
  readonly op: StepOp | "refresh";
  readonly type: string;
  readonly name: string;
  readonly urn: string;
}

export type EngineEvent =
  | { readonly kind: "phase"; readonly phase: "preview" | "update" | "refresh" | "destroy" }
  | ({ readonly kind: "started" } & Work)
  | ({ readonly kind: "finished"; readonly ms: number; readonly error?: string } & Work)
  | { readonly kind: "diagnostic"; readonly diagnostic: Diagnostic };

/** Returns the steps to report: steps of resources that a program declares, and all failed steps. */
export function reportedSteps(steps: readonly Step[]): Step[] {
  return steps.filter(({ type, error }) => type !== STATE_IDENTITY_TYPE || error !== undefined);
}

export function summarize(steps: readonly Step[]): Summary {
  const summary: Summary = { create: 0, update: 0, replace: 0, delete: 0, import: 0, same: 0 };
  for (const step of steps) if (step.error === undefined) summary[step.op] += 1;
  return summary;
}

/** Returns the number of successful deletions that keep their object. */
export const retainedObjects = (steps: readonly ShownStep[]): number =>
  steps.filter(({ op, retained, error }) => op === "delete" && retained && error === undefined).length;

/** Returns a sentence with the number of failed resources; undefined if no step failed. */
export function failedSteps(steps: readonly Step[]): string | undefined {
  const count = steps.filter((step) => step.error !== undefined).length;
  return count === 0 ? undefined : `${count} resource${count === 1 ? "" : "s"} failed.`;
}

/** Returns the result without the properties of its resources, as commands print it. */
export function withoutValues(result: Result): Result {
  return { ...result, steps: result.steps.map(shownStep) };
}

export function shownStep({ before: _before, after: _after, ...step }: Step): ShownStep {
  return step;
}

export function hasChanges(result: Result): boolean {
  return result.steps.some((step) => step.op !== "same");
}

export interface PreviewOptions extends TargetOptions {
  /** Reads the live objects first. @default false */
  readonly refresh?: boolean;
  /** URNs, with wildcards, of resources to replace even if nothing changed. */
  readonly replace?: readonly string[];
  /** Adds the resource before and after to all steps, including unchanged resources. @default false */
  readonly values?: boolean;
  /** Creates a missing stack. If false, a missing stack is a StackSelectionError. @default true */
  readonly create?: boolean;
}

/** Options of runs that make changes. */
export interface Confirmable {
  /**
   * Called with the plan before the first change, if there are changes. If it returns false, the run ends with a
   * DeclinedError.
   */
  readonly confirm?: (plan: Plan) => Promise<boolean>;
}

export interface UpOptions extends PreviewOptions, Confirmable {
  /** Stops a run that deviates from the confirmed plan. Calls `confirm` even for an empty plan. @default false */
  readonly held?: boolean;
  /** Runs the program once, without preview and confirmation. @default false */
  readonly skipPreview?: boolean;
}

export interface RefreshRunOptions extends TargetOptions, Confirmable {
  /** Removes pending creations of an earlier run, after the user has checked their objects. @default false */
  readonly clearPendingCreates?: boolean;
}

export interface DestroyOptions extends TargetOptions, Confirmable {
  /** Reads the live objects first. @default false */
  readonly refresh?: boolean;
}

export interface StackOptions {
  /** Project directory, which contains Pulumi.yaml. @default the current directory */
  readonly folder?: string;
  /** Name of the stack. @default PULUMI_STACK, or the project's only stack */
  readonly stack?: string;
  /** Engine for the stack. @default the CLI if it is on the PATH; NoEngineError otherwise */
  readonly engine?: EngineName;
  /** @default the environment of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** Called for all events during a run. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** Maximum number of concurrent operations on objects. @default 16 */
  readonly parallel?: number;
  /** Ends a run like Ctrl-C when aborted: the run finishes steps in flight and starts no more steps. */
  readonly signal?: AbortSignal;
}

export interface StateResource {
  readonly urn: string;
  readonly id?: string;
  /** Reference to the provider instance: `urn::id`. */
  readonly provider?: string;
  readonly type: string;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly outputs?: Readonly<Record<string, unknown>>;
  /** Paths of inputs whose changes the program ignores, as of its last run. */
  readonly ignoreChanges?: readonly string[];
}

/**
 * One open stack. The runs reject with UpdateFailedError, ProgramError or CancelledError (each with the result so far),
 * LockedError, UnsupportedError, BackendError or PassphraseError. For targets that match no resource or contradict each
 * other, they reject with EngineError.
 */
export interface Stack {
  readonly engine: EngineName;
  readonly project: string;
  /** Name of the stack, without organization and project. */
  readonly stack: string;
  /** The name that selects the stack, with the given organization and project. */
  readonly selector: string;
  /** Plans `up`. Changes nothing, except that it creates a missing stack unless `create` is false. */
  preview(options?: PreviewOptions): Promise<Plan>;
  /** Applies the program after a preview. Ends after the preview if there is nothing to do or to write. */
  up(options?: UpOptions): Promise<Result>;
  /** Updates the state from the live objects. */
  refresh(options?: RefreshRunOptions): Promise<Result>;
  destroy(options?: DestroyOptions): Promise<Result>;
  /** Compares the live objects with the state. Changes nothing. */
  drift(options?: TargetOptions): Promise<Result>;
  /**
   * Returns the stack's configuration as plain text by `namespace:key`. Secrets are decrypted, so do not print the
   * values. Does not create a missing stack.
   * @throws PassphraseError, StackSelectionError, ProjectError, BackendError, UnsupportedError, EngineError (`cli`)
   */
  config(): Promise<ReadonlyMap<string, string>>;
  /** Sets a value of the configuration in plain text. Creates a missing stack. */
  setConfig(key: string, text: string): Promise<void>;
  /** Returns the resources in the state, with secrets encrypted; an empty list if the stack does not exist. */
  resources(): Promise<readonly StateResource[]>;
  /** Encrypts a text like the stack's secrets, with the passphrase or the secrets provider. */
  encrypt(text: string): Promise<string>;
  /** Decrypts a text of `encrypt`. @throws PassphraseError if the text has another key, or was changed */
  decrypt(encrypted: string): Promise<string>;
}

/** Limits a run to some of the stack's resources. URNs may contain `*` (within a part of the URN) and `**`. */
export interface TargetOptions {
  /** URNs of the resources to include. All other resources are excluded. */
  readonly target?: readonly string[];
  /** Includes resources that depend on a target. @default false */
  readonly targetDependents?: boolean;
  /** URNs of resources to exclude. Cannot be combined with `target`. */
  readonly exclude?: readonly string[];
  /** Excludes resources that depend on an excluded resource. @default false */
  readonly excludeDependents?: boolean;
}
