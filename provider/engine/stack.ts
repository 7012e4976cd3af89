import { DeclinedError, EngineError, StackSelectionError } from "./errors.ts";
import type { EngineEvent, EngineName, Plan, Result } from "./model.ts";

/** Options of a preview. */
export interface PreviewOptions extends TargetOptions {
  /** Read the real objects first. @default false */
  readonly refresh?: boolean;
  /** URNs, with wildcards, of resources that are replaced even where nothing changed. */
  readonly replace?: readonly string[];
  /**
   * Every step of the plan, the unchanged ones too, tells what the resource is before and after.
   * @default false
   */
  readonly values?: boolean;
  /** False: a missing stack is a StackSelectionError instead of being made. @default true */
  readonly create?: boolean;
}

/** Options of the runs that change something. */
export interface Confirmable {
  /** Asked with the plan before anything is changed, if anything is to be; false ends the run with a DeclinedError. */
  readonly confirm?: (plan: Plan) => Promise<boolean>;
}

/** Asks `confirm`, if any, whether to carry out a plan. @throws DeclinedError for a no */
export async function requireConfirmation({ confirm }: Confirmable, plan: Plan): Promise<void> {
  if (confirm && !(await confirm(plan))) throw new DeclinedError();
}

/** Options of an update. */
export interface UpOptions extends PreviewOptions, Confirmable {
  /**
   * The run stops where it would depart from the plan that was confirmed; `confirm` is asked even for an empty plan.
   * @default false
   */
  readonly held?: boolean;
  /** The program is run once, and nothing is asked. @default false */
  readonly skipPreview?: boolean;
}

/** Options of a refresh. */
export interface RefreshRunOptions extends TargetOptions, Confirmable {
  /**
   * Forget creations that an earlier run left in flight, once somebody has looked for their objects.
   * @default false
   */
  readonly clearPendingCreates?: boolean;
}

/** Options of a destruction. */
export interface DestroyOptions extends TargetOptions, Confirmable {
  /** Read the real objects first. @default false */
  readonly refresh?: boolean;
}

/** The parts of a stack's name as Pulumi takes it: `prod`, `organization/prod` or `organization/project/prod`. */
export interface StackName {
  readonly organization?: string;
  readonly project?: string;
  /** Names the stack's files, and stands in its URNs. */
  readonly name: string;
}

/** @throws StackSelectionError where it is no name of a stack */
export function parseStackName(stack: string): StackName {
  const parts = stack.split("/");
  const [name = "", project, organization] =
    parts.length === 2 ? [parts[1], undefined, parts[0]] : parts.toReversed();
  if (parts.length > 3 || !parts.every((part) => /^(?!\.+$)[A-Za-z0-9_.-]{1,100}$/.test(part))) {
    throw new StackSelectionError(
      `${JSON.stringify(stack)} cannot be the name of a stack: letters, digits, "-", "_" and ".", also as organization/project/name.`,
    );
  }
  return {
    ...(organization !== undefined && { organization }),
    ...(project !== undefined && { project }),
    name,
  };
}

/** The name of a project's only stack. @throws StackSelectionError where it has none, or several */
export function onlyStack(project: string, stacks: readonly string[]): string {
  const [only, ...others] = stacks;
  if (only !== undefined && others.length === 0) return only;
  throw StackSelectionError.unnamed(project, stacks);
}

/** How a stack is opened. */
export interface StackOptions {
  /** Folder with Pulumi.yaml. @default the current one */
  readonly folder?: string;
  /** Name of the stack. @default PULUMI_STACK, or the only stack there is */
  readonly stack?: string;
  /** Which engine runs it. @default the CLI where it is on the PATH; without one, NoEngineError */
  readonly engine?: EngineName;
  /** Environment of the program and of the provider. @default that of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** Called with all that happens while a run goes on. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** How many objects may be worked on at once. @default 16 */
  readonly parallel?: number;
  /** Aborting it ends a run as Ctrl-C does: steps in flight are finished, nothing more is started. */
  readonly signal?: AbortSignal;
}

/** A resource in a state. */
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
  /** Deletes all the stack's resources, after a plan. */
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
  /**
   * Decrypts a text of `encrypt`.
   * @throws PassphraseError where it was encrypted with another key, or changed since
   */
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

/** @throws EngineError (`usage`) where options contradict each other */
export function checkTargetOptions(options: TargetOptions): void {
  const targets = (options.target?.length ?? 0) > 0;
  const excludes = (options.exclude?.length ?? 0) > 0;
  if (targets && excludes) throw new EngineError("usage", "--target and --exclude cannot be combined.");
  if (options.targetDependents && !targets) {
    throw new EngineError("usage", "--target-dependents needs a --target.");
  }
  if (options.excludeDependents && !excludes) {
    throw new EngineError("usage", "--exclude-dependents needs an --exclude.");
  }
}
