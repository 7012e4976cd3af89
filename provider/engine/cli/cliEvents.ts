import type { EngineEvent as CliEvent, StepEventMetadata } from "@pulumi/pulumi/automation/index.js";
import { mergedDiff } from "../embedded/deploy/refreshState.ts";
import { changedFields } from "../embedded/plan/changedFields.ts";
import { fieldDiff, shownProps, shownValues } from "../fieldDiff.ts";
import type { Command, Diagnostic, FieldChange, Shown, Step, StepOp } from "../model.ts";
import type { RunLog } from "../runLog.ts";
import { STACK_TYPE, urnName } from "../urn.ts";
import type { Props } from "../value.ts";

const OPS: Record<string, StepOp | undefined> = {
  create: "create",
  update: "update",
  delete: "delete",
  same: "same",
  import: "import",
  "import-replacement": "replace",
  replace: "replace",
  "create-replacement": "replace",
  "delete-replaced": "replace",
};

/** What the events are of. */
export type CliEventsOptions = {
  command: Command;
  planned: boolean;
  /** Every step tells what its resource is before and after. */
  values?: boolean;
};

/** Turns the CLI's events into the same steps and messages the embedded engine gives. */
export class CliEvents {
  readonly #log: RunLog;
  readonly #refresh: boolean;
  readonly #planning: boolean;
  readonly #values: boolean;
  /** By urn; of what an earlier run left over, by its id too. */
  readonly #steps = new Map<string, Step>();
  /** Objects that are replaced in this run. */
  readonly #replaced = new Set<string>();
  readonly #finish = new Map<string, (error?: string) => void>();
  readonly #errors = new Map<string, string>();

  /** The outputs of the stack's root resource, as far as the events told them. */
  outputs: Record<string, Shown> | undefined;

  constructor(log: RunLog, { command, planned, values = false }: CliEventsOptions) {
    this.#log = log;
    this.#refresh = command === "refresh" || command === "drift";
    this.#planning = planned;
    this.#values = values;
  }

  /** Takes one event. */
  take(event: CliEvent): void {
    if (event.diagnosticEvent) this.#diagnostic(event.diagnosticEvent);
    if (event.resourcePreEvent) this.#begin(event.resourcePreEvent.metadata);
    if (event.resOutputsEvent) this.#done(event.resOutputsEvent.metadata);
    if (event.resOpFailedEvent) this.#failed(event.resOpFailedEvent.metadata);
  }

  /** All steps, failures included; where the run did not finish, without those that were only begun. */
  steps(finished: boolean): Step[] {
    const steps = [...this.#steps.values()];
    if (finished) return steps;
    return steps.filter(
      (step) => step.op === "same" || step.error !== undefined || !this.#finish.has(step.urn),
    );
  }

  #diagnostic(event: NonNullable<CliEvent["diagnosticEvent"]>): void {
    if (event.ephemeral) return;
    const severity = event.severity === "info#err" ? "info" : event.severity;
    // With a urn, it is known whose error it is.
    const own = event.urn ? /^\S+ resource '[^']*': / : /^$/;
    const message = plainText(event.message).trimEnd().replace(own, "");
    if (message === "" || (severity as string) === "debug") return;
    // What failed was said before.
    if (severity === "error" && !event.urn && /^\w+ failed$/.test(message) && this.#errors.size > 0) return;
    const diagnostic: Diagnostic = { severity, message };
    if (event.urn) {
      diagnostic.urn = event.urn;
      if (severity === "error") this.#errors.set(event.urn, message);
    }
    this.#log.diagnostic(diagnostic);
  }

  #begin(metadata: StepEventMetadata): void {
    const step = this.#step(metadata);
    // A replacement is told of three times; the middle one does nothing.
    if (!step || this.#planning || metadata.op === "same" || metadata.op === "replace") return;
    const op = this.#refresh ? "refresh" : metadata.op === "delete-replaced" ? "delete" : step.op;
    this.#finish.set(workKey(metadata), this.#log.start(op, step));
  }

  #done(metadata: StepEventMetadata): void {
    const step = this.#step(metadata);
    if (!step) return;
    if (this.#values) addValues(step, metadata);
    const id = metadata.new?.id || metadata.old?.id;
    if (id) step.id = id;
    // A new resource that is no target is told of as unchanged, though there is none.
    else if (metadata.op === "same" && metadata.new?.custom) this.#steps.delete(step.urn);
    if (step.type === STACK_TYPE && metadata.new) this.outputs = shownProps(metadata.new.outputs as Props);
    this.#end(metadata, undefined);
  }

  #failed(metadata: StepEventMetadata): void {
    const step = this.#step(metadata);
    if (!step) return;
    step.error = this.#errors.get(step.urn) ?? "it failed";
    this.#end(metadata, step.error);
  }

  #end(metadata: StepEventMetadata, error: string | undefined): void {
    this.#finish.get(workKey(metadata))?.(error);
    this.#finish.delete(workKey(metadata));
  }

  /** The step an event is about; undefined for what is not shown: default providers. */
  #step(metadata: StepEventMetadata): Step | undefined {
    if (metadata.type.startsWith("pulumi:providers:")) return undefined;
    // Before an update, what a refresh finds shows in the steps that follow from it.
    let op = metadata.op !== "refresh" ? OPS[metadata.op] : this.#refresh ? refreshOp(metadata) : undefined;
    if (!op) return undefined;
    let key = metadata.urn;
    if (this.#isLeftOver(metadata)) {
      op = "delete";
      key = objectKey(metadata);
    }
    let step = this.#steps.get(key);
    if (!step) {
      step = { op, urn: metadata.urn, type: metadata.type, name: urnName(metadata.urn), fields: [] };
      this.#steps.set(key, step);
    }
    // One resource has several events; a replacement shows as one step.
    if (step.op === "same" || op === "replace") step.op = op;
    if (step.op !== "same") step.fields = fieldsOf(metadata, step.op, this.#refresh, step.fields);
    if (step.op === "replace" && metadata.keys?.length) step.replaceKeys = metadata.keys;
    return step;
  }

  /** True for an object whose replacement an earlier run made: it goes, whatever becomes of the new one. */
  #isLeftOver(metadata: StepEventMetadata): boolean {
    if (metadata.op !== "delete-replaced") {
      if (OPS[metadata.op] === "replace") this.#replaced.add(objectKey(metadata));
      return false;
    }
    return metadata.old?.delete === true && !this.#replaced.has(objectKey(metadata));
  }
}

function objectKey({ urn, old }: StepEventMetadata): string {
  return `${urn} ${old?.id ?? ""}`;
}

function workKey(metadata: StepEventMetadata): string {
  return `${metadata.op} ${metadata.urn}`;
}

function refreshOp(metadata: StepEventMetadata): StepOp {
  if (!metadata.new) return "delete";
  return mergedDiff(propsOf(metadata.old), propsOf(metadata.new)).length > 0 ? "update" : "same";
}

function fieldsOf(
  metadata: StepEventMetadata,
  op: StepOp,
  refresh: boolean,
  known: FieldChange[],
): FieldChange[] {
  const old = propsOf(metadata.old);
  const now = propsOf(metadata.new);
  if (op === "delete") return fieldDiff(old.inputs, undefined);
  if (refresh) return mergedDiff(old, now);
  if (metadata.op === "delete-replaced") return known;
  const fields = changedFields(metadata.old ? old : undefined, now.inputs);
  if (fields.length > 0 || known.length > 0 || op !== "update") return fields.length > 0 ? fields : known;
  // The CLI masks secrets before it tells them: where nothing else differs, one of them does.
  return Object.entries(now.inputs)
    .filter(([, value]) => value === "[secret]")
    .map(([path]) => ({ path, old: "[secret]", new: "[secret]" }));
}

/** A replacement is told of several times, of which its deletion knows only what was; an import tells what it read. */
function addValues(step: Step, { op, old, new: now }: StepEventMetadata): void {
  if (old && op !== "import") step.before ??= shownValues(valuesOf(old));
  if (now && op !== "delete-replaced") step.after = shownValues(valuesOf(now));
}

const valuesOf = (state: NonNullable<StepEventMetadata["old"]>) => ({
  ...propsOf(state),
  retainOnDelete: state.retainOnDelete === true,
});

function propsOf(state: StepEventMetadata["old"]): { inputs: Props; outputs: Props } {
  return { inputs: (state?.inputs ?? {}) as Props, outputs: (state?.outputs ?? {}) as Props };
}

function plainText(text: string): string {
  // Colours come as tags like <{%fg 1%}>.
  return text.replace(/<\{%[^%]*%\}>/g, "");
}

/** The stack's outputs as the CLI gives them, secrets masked. */
export function shownOutputs(
  outputs: Record<string, { value: unknown; secret: boolean }>,
): ReturnType<typeof shownProps> {
  const shown = shownProps(
    Object.fromEntries(Object.entries(outputs).map(([key, { value }]) => [key, value as never])),
  );
  for (const [key, { secret }] of Object.entries(outputs)) if (secret) shown[key] = "[secret]";
  return shown;
}
