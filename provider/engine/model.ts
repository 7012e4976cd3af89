import { STATE_IDENTITY_TYPE } from "./urn.ts";

/** Which engine ran. */
export type EngineName = "cli" | "embedded";

/** What a run does. */
export type Command = "preview" | "up" | "refresh" | "destroy" | "drift";

/** What happens, or happened, to one resource. `import`: it takes over an object that was there already. */
export type StepOp = "create" | "update" | "replace" | "delete" | "import" | "same";

/** A value fit for showing: secrets are the text `[secret]`, values not known yet `[unknown]`. */
export type Shown = null | boolean | number | string | Shown[] | { [key: string]: Shown };

/** True where a value is, or holds, one of these words. */
export function holds(value: Shown | undefined, ...words: readonly ("[unknown]" | "[secret]")[]): boolean {
  if (Array.isArray(value)) return value.some((item) => holds(item, ...words));
  if (typeof value === "object" && value !== null)
    return Object.values(value).some((item) => holds(item, ...words));
  return words.some((word) => word === value);
}

/**
 * One changed field; `path` is dotted. A side without value is left out. `outputOnly` marks what a refresh or drift
 * found different in the outputs alone: nothing the program sets.
 */
export type FieldChange = { path: string; old?: Shown; new?: Shown; outputOnly?: true };

/** The properties of a resource at one time. */
export type ResourceValues = {
  inputs: Record<string, Shown>;
  outputs: Record<string, Shown>;
  /** The object stays where it is when the resource goes (`retainOnDelete`). */
  retained?: true;
};

/** What happens, or happened, to one resource, as people and other programs are shown it. */
export type ShownStep = {
  op: StepOp;
  urn: string;
  type: string;
  name: string;
  /** The provider's id, where known. */
  id?: string;
  /** Changed inputs; for a refresh or drift, the inputs and outputs that differ from the state. */
  fields: FieldChange[];
  /** For a replacement: the fields that force it. */
  replaceKeys?: string[];
  /** Set where the step was tried and failed. */
  error?: string;
};

/** One resource in a plan or a result. */
export type Step = ShownStep & {
  /**
   * In a plan with values: what the state holds of the resource, after a refresh what was read; a provider may read
   * outputs alone. Left out where there is none yet.
   */
  before?: ResourceValues;
  /**
   * In a plan with values: what the resource will be. Of one that is made or changed the outputs are its inputs, as
   * programs see them in a preview: what only the run can tell is left out. Left out where it will be gone.
   */
  after?: ResourceValues;
};

/** A message of the program, a provider or the engine. */
export type Diagnostic = {
  severity: "debug" | "info" | "warning" | "error";
  message: string;
  urn?: string;
};

/** Said of an update that has nothing to do, nor to write to the state. */
export const NOTHING_TO_DO: Diagnostic = {
  severity: "info",
  message: "Nothing to do: program, state and outputs agree.",
};

/** Number of resources by what happened to them. Default providers are not counted. */
export type Summary = Record<StepOp, number>;

/** What a run found or did: the same for both engines. */
export type Result = {
  engine: EngineName;
  command: Command;
  project: string;
  stack: string;
  ok: boolean;
  /** True where the steps are what would be done: nothing was changed. */
  planned: boolean;
  /** True where this run made the stack. */
  createdStack: boolean;
  steps: Step[];
  summary: Summary;
  /** The stack's outputs, secrets masked. */
  outputs: Record<string, Shown>;
  diagnostics: Diagnostic[];
  durationMs: number;
};

/** A plan is the result of a preview: nothing was changed. */
export type Plan = Result;

/** Told while a run goes on. */
export type EngineEvent =
  | { kind: "phase"; phase: "preview" | "update" | "refresh" | "destroy" }
  | { kind: "started"; op: StepOp | "refresh"; type: string; name: string; urn: string }
  | {
      kind: "finished";
      op: StepOp | "refresh";
      type: string;
      name: string;
      urn: string;
      ms: number;
      error?: string;
    }
  | { kind: "diagnostic"; diagnostic: Diagnostic };

/** A summary of nothing. */
export function emptySummary(): Summary {
  return { create: 0, update: 0, replace: 0, delete: 0, import: 0, same: 0 };
}

/** The steps that people are told of: those of resources that a program declares, and whatever failed. */
export function toldSteps(steps: readonly Step[]): Step[] {
  return steps.filter(({ type, error }) => type !== STATE_IDENTITY_TYPE || error !== undefined);
}

/** Counts the steps. */
export function summarise(steps: Step[]): Summary {
  const summary = emptySummary();
  for (const step of steps) if (step.error === undefined) summary[step.op] += 1;
  return summary;
}

/** The same without what resources are before and after: what people and other programs are shown. */
export function withoutValues(result: Result): Result {
  return { ...result, steps: result.steps.map(shownStep) };
}

/** A step without what its resource is before and after. */
export function shownStep({ before: _before, after: _after, ...step }: Step): ShownStep {
  return step;
}

/** True where any step is more than `same`. */
export function hasChanges(result: Result): boolean {
  return result.steps.some((step) => step.op !== "same");
}
