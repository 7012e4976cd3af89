import { type Left, readLeftNotice } from "../engineMarks.ts";
import type { Shown } from "../shownValue.ts";
import { STATE_IDENTITY_TYPE } from "../urn.ts";

export { holds, type Shown } from "../shownValue.ts";

/** The engines that run a stack. */
export const ENGINES = ["cli", "embedded"] as const;
export type EngineName = (typeof ENGINES)[number];

/** The program that produced a result or plan: one of the engines, or `terraform` for a Terraform plan. */
export type Runner = EngineName | "terraform";

/** The command of a run. */
export type Command = "preview" | "up" | "refresh" | "destroy" | "drift";

/** The operation on one resource. `import` adopts an existing object. */
export type StepOp = "create" | "update" | "replace" | "delete" | "import" | "same";

/** A type with writable fields, for code that builds an object step by step. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A changed field of a resource. `old` is omitted if the field had no value before, and `new` is omitted if the field
 * has no value now.
 */
export interface FieldChange {
  /** Path of the field: property names separated by dots, beginning with the outermost property. */
  readonly path: string;
  readonly old?: Shown;
  readonly new?: Shown;
  /** True if a refresh or drift found the difference in an output, and the program has no input with the same name. */
  readonly outputOnly?: true;
}

/** The properties of a resource before or after a step. */
export interface ResourceValues {
  readonly inputs: Record<string, Shown>;
  readonly outputs: Record<string, Shown>;
  /** True if a deletion of the resource keeps its object (`retainOnDelete`). */
  readonly retained?: true;
  /**
   * For each unknown input, the URNs of the resources whose outputs determine its value. Omitted if no input is
   * unknown, or if the engine does not report references.
   */
  readonly references?: Readonly<Record<string, readonly string[]>>;
  /**
   * The URNs of the resources that must exist before this resource. Omitted if there are none, or if the engine does
   * not report references.
   */
  readonly dependsOn?: readonly string[];
  /**
   * The inputs of the resource's provider instance. Omitted if the engine does not report provider instances. A secret
   * input is a credential that the program sets only for this provider instance.
   */
  readonly provider?: Readonly<Record<string, Shown>>;
}

/** A planned or executed operation on one resource, as commands print it. */
export interface ShownStep {
  readonly op: StepOp;
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** The id of the object, if known. */
  readonly id?: string;
  /** The changed inputs. For a refresh or drift, the inputs and outputs that differ from the state. */
  readonly fields: readonly FieldChange[];
  /** The fields that force a replacement; omitted for other operations. */
  readonly replaceKeys?: readonly string[];
  /**
   * True if a deletion or replacement keeps the old object, which is then unmanaged. This happens with the option
   * `retainOnDelete` or with Terraform's `destroy = false`.
   */
  readonly retained?: true;
  /** The error message of a failed step. */
  readonly error?: string;
}

/** A step of a plan or a result, with the resource's values before and after the step. */
export interface Step extends ShownStep {
  /**
   * The resource's values before the step: the values in the state, or the values that a refresh read. Only a plan with
   * values contains them. Some providers return only outputs when they read an object. Omitted if the resource does not
   * exist yet.
   */
  readonly before?: ResourceValues;
  /**
   * The resource's values after the step. Only a plan with values contains them. For a created or changed resource, the
   * outputs are equal to the inputs, as in a preview of the program, since all other outputs are unknown before the
   * run. Omitted if the step deletes the resource.
   */
  readonly after?: ResourceValues;
}

/** A message from the program, a provider or the engine. */
export interface Diagnostic {
  readonly severity: "debug" | "info" | "warning" | "error";
  readonly message: string;
  readonly urn?: string;
}

/** The message of an update that would change neither an object nor the state. */
export const NOTHING_TO_DO: Diagnostic = {
  severity: "info",
  message: "No changes: the program matches the state and the outputs.",
};

/** Number of resources for each operation, without default providers. */
export type Summary = Record<StepOp, number>;

/** The result of a run, with the same fields for all engines. */
export interface Result {
  readonly engine: Runner;
  readonly command: Command;
  readonly project: string;
  readonly stack: string;
  readonly ok: boolean;
  /** True if the run only planned the steps and changed nothing. */
  readonly planned: boolean;
  /** True if this run created the stack. */
  readonly createdStack: boolean;
  readonly steps: readonly Step[];
  readonly summary: Summary;
  /** The stack's outputs, with secrets masked. */
  readonly outputs: Record<string, Shown>;
  readonly diagnostics: readonly Diagnostic[];
  /**
   * Objects that deletions left on the service. A deletion leaves an object if a different stack was the last to
   * declare it. Omitted if there are none.
   */
  readonly left?: readonly Left[];
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

/** Returns the steps to report: the steps of resources that a program declares, and all failed steps. */
export function reportedSteps(steps: readonly Step[]): Step[] {
  return steps.filter(({ type, error }) => type !== STATE_IDENTITY_TYPE || error !== undefined);
}

export function summarize(steps: readonly Step[]): Summary {
  const summary: Summary = { create: 0, update: 0, replace: 0, delete: 0, import: 0, same: 0 };
  for (const step of steps) if (step.error === undefined) summary[step.op] += 1;
  return summary;
}

/** Returns the number of successful deletions that keep the object (`retainOnDelete`). */
export const retainedObjects = (steps: readonly ShownStep[]): number =>
  steps.filter(({ op, retained, error }) => op === "delete" && retained && error === undefined).length;

/** Returns the objects that deletions left on the service, in the form of {@link Result.left}. */
export function leftObjects(diagnostics: readonly Diagnostic[]): Pick<Result, "left"> {
  const left = diagnostics.flatMap(({ message }) => readLeftNotice(message) ?? []);
  return left.length > 0 ? { left } : {};
}

/** Returns a sentence with the number of failed resources. Returns undefined if no step failed. */
export function failedSteps(steps: readonly Step[]): string | undefined {
  const count = steps.filter((step) => step.error !== undefined).length;
  return count === 0 ? undefined : `${count} resource${count === 1 ? "" : "s"} failed.`;
}

/**
 * Returns the result without `before` and `after`, the values of the resources before and after each step. Commands
 * print the result in this form.
 */
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
  /** True to read the live objects before the run plans changes. @default false */
  readonly refresh?: boolean;
  /** URNs of resources to replace even if nothing changed. URNs may contain wildcards. */
  readonly replace?: readonly string[];
  /**
   * True to add the values before and after the operation to all steps, including steps of unchanged resources.
   * @default false
   */
  readonly values?: boolean;
  /**
   * True to create the stack if it does not exist. If false, a missing stack causes a StackSelectionError.
   * @default true
   */
  readonly create?: boolean;
}

/** Options of runs that change objects or the state. */
export interface Confirmable {
  /**
   * A function that is called with the plan before the first change. If the plan has no changes, the function is not
   * called. If the function returns false, the run ends with a DeclinedError.
   */
  readonly confirm?: (plan: Plan) => Promise<boolean>;
}

export interface UpOptions extends PreviewOptions, Confirmable {
  /**
   * True to stop the run if it deviates from the confirmed plan. `confirm` is then called even if the plan is empty.
   * @default false
   */
  readonly held?: boolean;
  /** True to run the program only once, without a preview or a confirmation. @default false */
  readonly skipPreview?: boolean;
  /**
   * A function that is called after the plan is confirmed, and before the stack is created and the program is applied.
   * Returns environment variables to add for the program and its providers. If the plan has no changes, the function is
   * not called.
   */
  readonly prepare?: () => Promise<Readonly<Record<string, string>>>;
}

export interface RefreshRunOptions extends TargetOptions, Confirmable {
  /**
   * True to remove pending create operations of an earlier run from the state. Before you set this option, check
   * whether the objects exist on the service.
   * @default false
   */
  readonly clearPendingCreates?: boolean;
}

export interface DestroyOptions extends TargetOptions, Confirmable {
  /** True to read the live objects before the run plans deletions. @default false */
  readonly refresh?: boolean;
}

export interface StackOptions {
  /** Project directory, which contains Pulumi.yaml. @default the current directory */
  readonly folder?: string;
  /** Name of the stack. @default `PULUMI_STACK`, or the project's only stack */
  readonly stack?: string;
  /** Engine that runs the stack. @default the Pulumi CLI; rejects with NoEngineError if the CLI is not on the PATH */
  readonly engine?: EngineName;
  /** @default the environment of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** A function that is called for each event of a run. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** Maximum number of concurrent operations on objects. @default 16 */
  readonly parallel?: number;
  /** A signal that stops a run like Ctrl-C. The run finishes the steps in flight and starts no new steps. */
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
  /**
   * True for the entry of a deposed object: the old object of a replaced resource, which a later run will delete. The
   * URN is equal to the URN of the new resource.
   */
  readonly delete?: boolean;
  /** Input paths in the resource option `ignoreChanges`, as declared in the last run of the program. */
  readonly ignoreChanges?: readonly string[];
}

/**
 * One open stack. The methods that run a command reject with one of these errors: UpdateFailedError, ProgramError or
 * CancelledError (each with the result so far), LockedError, UnsupportedError, BackendError or PassphraseError. They
 * reject with EngineError if targets match no resource or contradict each other.
 */
export interface Stack {
  readonly engine: EngineName;
  readonly project: string;
  /** Name of the stack, without organization and project. */
  readonly stack: string;
  /**
   * The name with which the user selected the stack. Includes the organization and the project if the user specified
   * them.
   */
  readonly selector: string;
  /** Plans the changes of `up`. Changes nothing, except that it creates a missing stack unless `create` is false. */
  preview(options?: PreviewOptions): Promise<Plan>;
  /**
   * Runs a preview and then applies the program. Ends after the preview if neither an object nor the state would
   * change. After the plan is confirmed, creates the stack if it is missing.
   */
  up(options?: UpOptions): Promise<Result>;
  /** Updates the state with the values of the live objects. */
  refresh(options?: RefreshRunOptions): Promise<Result>;
  destroy(options?: DestroyOptions): Promise<Result>;
  /** Compares the live objects with the state without changing anything. */
  drift(options?: TargetOptions): Promise<Result>;
  /**
   * Returns the stack's configuration values in plaintext, by `namespace:key`. The values include decrypted secrets, so
   * do not print them. Does not create a missing stack.
   * @throws PassphraseError, StackSelectionError, ProjectError, BackendError, UnsupportedError, EngineError
   *   (`pulumi_cli`)
   */
  config(): Promise<ReadonlyMap<string, string>>;
  /** Sets a configuration value in plaintext. Creates the stack if it does not exist. */
  setConfig(key: string, text: string): Promise<void>;
  /** Returns the resources in the state, with secrets encrypted. Returns an empty list if the stack does not exist. */
  resources(): Promise<readonly StateResource[]>;
  /** Encrypts a string with the stack's encryption key, which comes from the passphrase or the secrets provider. */
  encrypt(text: string): Promise<string>;
  /**
   * Decrypts a string that `encrypt` encrypted.
   * @throws PassphraseError if the string was encrypted with a different key, or was changed
   */
  decrypt(encrypted: string): Promise<string>;
}

/**
 * Limits a run to some of the stack's resources. URNs may contain wildcards: `*` matches within a part of the URN, and
 * `**` matches across parts.
 */
export interface TargetOptions {
  /** URNs of the resources to include. All other resources are excluded. */
  readonly target?: readonly string[];
  /** True to include resources that depend on a target. @default false */
  readonly targetDependents?: boolean;
  /** URNs of resources to exclude. Cannot be combined with `target`. */
  readonly exclude?: readonly string[];
  /** True to exclude resources that depend on an excluded resource. @default false */
  readonly excludeDependents?: boolean;
}
