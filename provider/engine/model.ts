import { STATE_IDENTITY_TYPE } from "../urn.ts";

/** Which engine ran. */
export type EngineName = "cli" | "embedded";

/** What made a result: an engine; or Terraform, whose plan was read. */
export type Runner = EngineName | "terraform";

/** What a run does. */
export type Command = "preview" | "up" | "refresh" | "destroy" | "drift";

/** What happens, or happened, to one resource. `import`: it takes over an object that was there already. */
export type StepOp = "create" | "update" | "replace" | "delete" | "import" | "same";

/** A value fit for showing: a secret is the text `[secret]`, a value that is not known yet `[unknown]`. */
export type Shown = null | boolean | number | string | Shown[] | { [key: string]: Shown };

/** The same type with fields that can be set, for the code that builds an object step by step. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** True where a value is, or contains, one of these words. */
export function holds(value: Shown | undefined, ...words: readonly ("[unknown]" | "[secret]")[]): boolean {
  if (Array.isArray(value)) return value.some((item) => holds(item, ...words));
  if (typeof value === "object" && value !== null)
    return Object.values(value).some((item) => holds(item, ...words));
  return words.some((word) => word === value);
}

/** One changed field. A side without a value is left out. */
export interface FieldChange {
  /** The names of the properties from the outermost on, divided by dots. */
  readonly path: string;
  readonly old?: Shown;
  readonly new?: Shown;
  /** Set where a refresh or drift found a difference in the outputs alone: the program sets no input of that name. */
  readonly outputOnly?: true;
}

/** The properties of a resource at one time. */
export interface ResourceValues {
  readonly inputs: Record<string, Shown>;
  readonly outputs: Record<string, Shown>;
  /** Set where the object stays when the resource is deleted (`retainOnDelete`). */
  readonly retained?: true;
  /**
   * The inputs of the provider instance that it belongs to, where the engine tells them. A secret one is a credential that
   * the program gives this instance alone.
   */
  readonly provider?: Readonly<Record<string, Shown>>;
}

/** What happens, or happened, to one resource, as people and other programs are shown it. */
export interface ShownStep {
  readonly op: StepOp;
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** The provider's id, where known. */
  readonly id?: string;
  /** Changed inputs; for a refresh or drift, the inputs and outputs that differ from the state. */
  readonly fields: readonly FieldChange[];
  /** For a replacement: the fields that force it. */
  readonly replaceKeys?: readonly string[];
  /** Set for a deletion or a replacement whose old object stays, unmanaged: `retainOnDelete`, or Terraform's `destroy = false`. */
  readonly retained?: true;
  /** Set where the step was tried and failed. */
  readonly error?: string;
}

/** One resource in a plan or a result. */
export interface Step extends ShownStep {
  /**
   * In a plan with values: the resource in the state, or after a refresh as it was read; a provider may read outputs
   * alone. Left out where there is none yet.
   */
  readonly before?: ResourceValues;
  /**
   * In a plan with values: the resource as it will be. The outputs of one that is made or changed are its inputs, as
   * programs see them in a preview; others are not known before the run. Left out where the resource will be gone.
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
  message: "Nothing to do: program, state and outputs agree.",
};

/** How many resources were created, updated and so on. Default providers are not counted. */
export type Summary = Record<StepOp, number>;

/** What a run found or did: the same for all engines. */
export interface Result {
  readonly engine: Runner;
  readonly command: Command;
  readonly project: string;
  readonly stack: string;
  readonly ok: boolean;
  /** True where the steps are what would be done: nothing was changed. */
  readonly planned: boolean;
  /** True where this run made the stack. */
  readonly createdStack: boolean;
  readonly steps: readonly Step[];
  readonly summary: Summary;
  /** The stack's outputs, secrets masked. */
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

/** The steps that people are told of: those of resources that a program declares, and all that failed. */
export function reportedSteps(steps: readonly Step[]): Step[] {
  return steps.filter(({ type, error }) => type !== STATE_IDENTITY_TYPE || error !== undefined);
}

export function summarize(steps: readonly Step[]): Summary {
  const summary: Summary = { create: 0, update: 0, replace: 0, delete: 0, import: 0, same: 0 };
  for (const step of steps) if (step.error === undefined) summary[step.op] += 1;
  return summary;
}

/** How many of the deletions that did not fail leave their object where it is. */
export const retainedObjects = (steps: readonly ShownStep[]): number =>
  steps.filter(({ op, retained, error }) => op === "delete" && retained && error === undefined).length;

/** A sentence; undefined where no step failed. */
export function failedSteps(steps: readonly Step[]): string | undefined {
  const count = steps.filter((step) => step.error !== undefined).length;
  return count === 0 ? undefined : `${count} resource${count === 1 ? "" : "s"} failed.`;
}

/** The result without the properties of its resources, as people and other programs are shown it. */
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
  /** Read the real objects first. @default false */
  readonly refresh?: boolean;
  /** URNs, with wildcards, of resources that are replaced even where nothing changed. */
  readonly replace?: readonly string[];
  /** Every step, unchanged ones too, has the resource before and after. @default false */
  readonly values?: boolean;
  /** False: a missing stack is a StackSelectionError instead of being made. @default true */
  readonly create?: boolean;
}

/** Options of the runs that change something. */
export interface Confirmable {
  /** Asked with the plan before anything is changed, if anything is to be; false ends the run with a DeclinedError. */
  readonly confirm?: (plan: Plan) => Promise<boolean>;
}

export interface UpOptions extends PreviewOptions, Confirmable {
  /** Stops a run that departs from the confirmed plan; asks `confirm` even for an empty one. @default false */
  readonly held?: boolean;
  /** The program is run once, and nothing is asked. @default false */
  readonly skipPreview?: boolean;
}

export interface RefreshRunOptions extends TargetOptions, Confirmable {
  /** Forget creations that an earlier run left in flight, once the user has looked for their objects. @default false */
  readonly clearPendingCreates?: boolean;
}

export interface DestroyOptions extends TargetOptions, Confirmable {
  /** Read the real objects first. @default false */
  readonly refresh?: boolean;
}

export interface StackOptions {
  /** Folder with Pulumi.yaml. @default the current one */
  readonly folder?: string;
  /** Name of the stack. @default PULUMI_STACK, or the only stack there is */
  readonly stack?: string;
  /** Which engine runs it. @default the CLI where it is on the PATH; without one, NoEngineError */
  readonly engine?: EngineName;
  /** @default that of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** Called with all that happens while a run goes on. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** How many objects may be worked on at once. @default 16 */
  readonly parallel?: number;
  /** Aborting it ends a run as Ctrl-C does: steps in flight are finished, nothing more is started. */
  readonly signal?: AbortSignal;
}

export interface StateResource {
  readonly urn: string;
  readonly id?: string;
  /** Its provider instance: `urn::id`. */
  readonly provider?: string;
  readonly type: string;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly outputs?: Readonly<Record<string, unknown>>;
  /** Paths of inputs whose changes the program ignores, as its last run said. */
  readonly ignoreChanges?: readonly string[];
}

/**
 * One stack, ready to run. The runs reject with UpdateFailedError, ProgramError or CancelledError (each with the result
 * so far), LockedError, UnsupportedError, BackendError, PassphraseError or, for targets that do not fit the stack or
 * each other, EngineError.
 */
export interface Stack {
  readonly engine: EngineName;
  readonly project: string;
  /** Its name, without organization and project. */
  readonly stack: string;
  /** What selects it: its name, with what was given before it. */
  readonly selector: string;
  /** What `up` would do. Nothing is changed, except that a missing stack is made unless `create` is false. */
  preview(options?: PreviewOptions): Promise<Plan>;
  /** Makes the program's resources real, after a preview; where that finds nothing to do or to write, it is all. */
  up(options?: UpOptions): Promise<Result>;
  /** Brings the state up to the real objects. */
  refresh(options?: RefreshRunOptions): Promise<Result>;
  destroy(options?: DestroyOptions): Promise<Result>;
  /** Finds out where the real objects differ from the state; nothing is changed. */
  drift(options?: TargetOptions): Promise<Result>;
  /**
   * The stack's configuration as plain text by `namespace:key`, with secrets decrypted: not for showing. A missing
   * stack is not made.
   * @throws PassphraseError, StackSelectionError, ProjectError, BackendError, UnsupportedError, EngineError (`cli`)
   */
  config(): Promise<ReadonlyMap<string, string>>;
  /** Sets a value of that configuration, in plain text; a missing stack is made. */
  setConfig(key: string, text: string): Promise<void>;
  /** The resources in the state, with secrets encrypted; none where the stack is missing. */
  resources(): Promise<readonly StateResource[]>;
  /** Encrypts a text as the stack's secrets are: with its passphrase, or by its secrets provider. */
  encrypt(text: string): Promise<string>;
  /** Decrypts a text of `encrypt`. @throws PassphraseError where it has another key, or was changed */
  decrypt(encrypted: string): Promise<string>;
}

/** Limits a run to some of the stack's resources. URNs may hold `*` (within a part of the URN) and `**`. */
export interface TargetOptions {
  /** URNs of the only resources that take part. */
  readonly target?: readonly string[];
  /** Resources that depend on a target take part as well. @default false */
  readonly targetDependents?: boolean;
  /** URNs of resources that take no part. Not together with `target`. */
  readonly exclude?: readonly string[];
  /** Resources that depend on an excluded one take no part either. @default false */
  readonly excludeDependents?: boolean;
}
