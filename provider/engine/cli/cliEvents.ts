import { isDeepStrictEqual } from "node:util";
import type { EngineEvent as CliEvent, StepEventMetadata } from "@pulumi/pulumi/automation/index.js";
import {
  DYNAMIC_PROVIDER_TYPE,
  isDefaultInstance,
  STACK_TYPE,
  urnName,
  urnOfProvider,
  urnType,
} from "../../urn.ts";
import {
  type Command,
  type FieldChange,
  holds,
  type ResourceValues,
  type Shown,
  type Step,
  type StepOp,
  type Writable,
} from "../model.ts";
import type { RunLog } from "../runLog.ts";
import { isProviderState } from "../state/resourceState.ts";
import {
  changedFields,
  fieldDiff,
  type Props,
  refreshedFields,
  shown,
  shownProps,
  shownValues,
  type Value,
} from "../value.ts";

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

interface CliEventsOptions {
  readonly command: Command;
  readonly planned: boolean;
  readonly values?: boolean;
}

interface Operation {
  readonly step: Step;
  /**
   * True for a custom resource, false for a component resource. Only custom resources have an object on the service.
   */
  readonly custom: boolean;
  readonly finish: (error?: string) => void;
}

/** Converts the CLI's events to the steps and messages that the embedded engine would report. */
export class CliEvents {
  readonly #log: RunLog;
  readonly #refresh: boolean;
  readonly #planning: boolean;
  readonly #values: boolean;
  /**
   * Steps by the resource's URN. The deletion of a deposed object is a separate step, whose key consists of the URN and
   * the object's id. A deposed object is an old object that an earlier run replaced but did not delete.
   */
  readonly #steps = new Map<string, Writable<Step>>();
  readonly #replaced = new Set<string>();
  readonly #running = new Map<string, Operation>();
  readonly #ended = new Set<Step>();
  readonly #errors = new Map<string, string>();
  /**
   * Reported warnings that belong to no resource. The CLI repeats some warnings whenever it starts a plugin, so each
   * warning is reported only once.
   */
  readonly #warned = new Set<string>();
  /**
   * Inputs of provider instances, by the provider reference `urn::id`. The inputs are empty until the CLI reports them.
   */
  readonly #providers = new Map<string, Record<string, Shown>>();

  /** The outputs of the stack's root resource; undefined if no event contains them. */
  outputs: Record<string, Shown> | undefined;

  constructor(log: RunLog, { command, planned, values = false }: CliEventsOptions) {
    this.#log = log;
    this.#refresh = command === "refresh" || command === "drift";
    this.#planning = planned;
    this.#values = values;
  }

  take(event: CliEvent): void {
    if (event.diagnosticEvent) this.#diagnostic(event.diagnosticEvent);
    if (event.resourcePreEvent) this.#begin(event.resourcePreEvent.metadata);
    if (event.resOutputsEvent) this.#done(event.resOutputsEvent.metadata);
    if (event.resOpFailedEvent) this.#failed(event.resOpFailedEvent.metadata);
  }

  /** Returns all steps, including failed steps. If the run did not finish, omits the steps that did not end. */
  steps(finished: boolean): Step[] {
    const steps = [...this.#steps.values()];
    if (finished) return steps;
    // Components are not checked, since the CLI reports the end of a component only if the program registers the
    // component's outputs.
    const started = [...this.#running.values()].filter(({ custom }) => custom).map(({ step }) => step);
    return steps.filter((step) => this.#ended.has(step) || !started.includes(step));
  }

  #diagnostic(event: NonNullable<CliEvent["diagnosticEvent"]>): void {
    if (event.ephemeral) return;
    const severity = event.severity === "info#err" ? "info" : event.severity;
    // Removes the resource's name from the message, since the diagnostic has a separate field for the URN.
    const own = event.urn ? /^\S+ resource '[^']*'(:| has a problem:) / : /^$/;
    const message = plainText(event.message).trimEnd().replace(own, "");
    if (message === "" || (severity as string) === "debug") return;
    // Skips the CLI's summary of a failed run, since the errors of the resources already report the failure.
    if (severity === "error" && !event.urn && /^\w+ failed$/.test(message) && this.#errors.size > 0) return;
    if (event.urn && severity === "error") this.#errors.set(event.urn, message);
    if (!event.urn && severity === "warning") {
      if (this.#warned.has(message)) return;
      this.#warned.add(message);
    }
    this.#log.diagnostic({ severity, message, ...(event.urn && { urn: event.urn }) });
  }

  #begin(metadata: StepEventMetadata): void {
    const step = this.#step(metadata, false);
    // The CLI reports a replacement with three events. The second event, `replace`, changes no object.
    if (!step || this.#planning || metadata.op === "same" || metadata.op === "replace") return;
    const op = this.#refresh ? "refresh" : metadata.op === "delete-replaced" ? "delete" : step.op;
    const custom = (metadata.new ?? metadata.old)?.custom === true;
    this.#running.set(this.#workKey(metadata), { step, custom, finish: this.#log.start(op, step) });
  }

  #done(metadata: StepEventMetadata): void {
    if (this.#values && isProviderState(metadata)) this.#knowProvider(metadata);
    const step = this.#step(metadata);
    if (!step) return;
    if (this.#values) this.#addValues(step, metadata);
    const id = metadata.new?.id || metadata.old?.id;
    if (id) step.id = id;
    // The CLI reports a new resource that is not a target as unchanged, although the resource's object does not exist
    // yet.
    else if (metadata.op === "same" && metadata.new?.custom) this.#steps.delete(step.urn);
    if (step.type === STACK_TYPE && metadata.new) this.outputs = shownProps(metadata.new.outputs as Props);
    this.#end(metadata, step, undefined);
  }

  #failed(metadata: StepEventMetadata): void {
    const step = this.#step(metadata);
    if (!step) return;
    step.error = this.#errors.get(step.urn) ?? "unknown error";
    this.#end(metadata, step, step.error);
  }

  #end(metadata: StepEventMetadata, step: Step, error: string | undefined): void {
    this.#ended.add(step);
    this.#running.get(this.#workKey(metadata))?.finish(error);
    this.#running.delete(this.#workKey(metadata));
  }

  #knowProvider({ urn, old, new: now }: StepEventMetadata): void {
    for (const state of [old, now]) {
      if (!state) continue;
      const inputs = Object.entries(shownProps(state.inputs as Props));
      // Omits the credential of a default provider instance. It is the credential of the stack, which Gatehouse already
      // has.
      const relevant = inputs.filter(([, value]) => !(isDefaultInstance(urn) && holds(value, "[secret]")));
      Object.assign(this.#provider(`${urn}::${state.id}`), Object.fromEntries(relevant));
    }
  }

  #provider(reference: string): Record<string, Shown> {
    const known = this.#providers.get(reference) ?? {};
    this.#providers.set(reference, known);
    return known;
  }

  /**
   * Adds the resource's values before and after the operation to a step. The deletion event of a replacement contains
   * only the old object. In an import event, `old` is the imported object, so its values are not used as the values
   * before the operation.
   */
  #addValues(step: Writable<Step>, { op, old, new: now }: StepEventMetadata): void {
    if (old && op !== "import") step.before ??= this.#valuesOf(old);
    if (now && op !== "delete-replaced") step.after = this.#valuesOf(now);
  }

  #valuesOf(state: NonNullable<StepEventMetadata["old"]>): ResourceValues {
    const values = shownValues({ ...propsOf(state), retainOnDelete: state.retainOnDelete === true });
    const { provider = "" } = state;
    // All dynamic resources share one provider instance, and its inputs are not needed.
    const isRelevant = provider !== "" && urnType(urnOfProvider(provider)) !== DYNAMIC_PROVIDER_TYPE;
    return isRelevant ? { ...values, provider: this.#provider(provider) } : values;
  }

  /**
   * Returns the step for an event. Returns undefined for events of default providers, since commands do not show them.
   */
  #step(metadata: StepEventMetadata, isRead = true): Writable<Step> | undefined {
    if (isProviderState(metadata) && isDefaultInstance(metadata.urn)) return undefined;
    // If the CLI refreshes the state before an update, the steps of the update include the changes of the refresh.
    let op = this.#refresh ? refreshOp(metadata, isRead) : OPS[metadata.op];
    if (!op) return undefined;
    let key = metadata.urn;
    if (this.#isLeftOver(metadata)) {
      op = "delete";
      key = objectKey(metadata);
    }
    let step = this.#steps.get(key);
    // During a refresh, the CLI may also run the program to read the provider settings. It then reports the resources a
    // second time.
    if (step && this.#refresh && this.#ended.has(step)) return undefined;
    if (!step) {
      step = { op, urn: metadata.urn, type: metadata.type, name: urnName(metadata.urn), fields: [] };
      this.#steps.set(key, step);
    }
    // The CLI sends several events for one resource. All events of a replacement belong to one step.
    if (step.op === "same" || op === "replace") step.op = op;
    if (step.op !== "same") step.fields = fieldsOf(metadata, step.op, this.#refresh, step.fields);
    if (step.op === "replace" && metadata.keys?.length) step.replaceKeys = metadata.keys;
    const losesObject = !this.#refresh && (step.op === "delete" || step.op === "replace");
    if (losesObject && metadata.old?.retainOnDelete) step.retained = true;
    return step;
  }

  #workKey({ op, urn }: StepEventMetadata): string {
    return this.#refresh ? urn : `${op} ${urn}`;
  }

  /**
   * Returns true if the event deletes a deposed object: an old object that an earlier run replaced but did not delete.
   * This run deletes a deposed object even if the new object does not change.
   */
  #isLeftOver(metadata: StepEventMetadata): boolean {
    if (metadata.op !== "delete-replaced") {
      if (OPS[metadata.op] === "replace") this.#replaced.add(objectKey(metadata));
      return false;
    }
    return metadata.old?.delete === true && !this.#replaced.has(objectKey(metadata));
  }
}

const objectKey = ({ urn, old }: StepEventMetadata) => `${urn} ${old?.id ?? ""}`;

/**
 * Returns the operation of a refresh. Returns undefined for a resource that is not in the state.
 * @param isRead false if the CLI has not read the object yet
 */
function refreshOp(metadata: StepEventMetadata, isRead: boolean): StepOp | undefined {
  if (!metadata.old) return undefined;
  if (!isRead) return "same";
  if (!metadata.new) return "delete";
  return refreshedFields(propsOf(metadata.old), propsOf(metadata.new)).length > 0 ? "update" : "same";
}

function fieldsOf(
  metadata: StepEventMetadata,
  op: StepOp,
  refresh: boolean,
  known: readonly FieldChange[],
): readonly FieldChange[] {
  const old = propsOf(metadata.old);
  const now = propsOf(metadata.new);
  if (op === "delete") return fieldDiff(old.inputs, undefined);
  if (refresh) return refreshedFields(old, now);
  if (metadata.op === "delete-replaced") return known;
  const fields = changedFields(metadata.old ? old : undefined, now.inputs);
  if (fields.length > 0 || known.length > 0 || op !== "update") return fields.length > 0 ? fields : known;
  // The CLI masks secrets in events. So if an update has no visible difference, a secret has changed.
  return Object.entries(now.inputs)
    .filter(([, value]) => value === "[secret]")
    .map(([path]) => ({ path, old: "[secret]", new: "[secret]" }));
}

function propsOf(state: StepEventMetadata["old"]): { inputs: Props; outputs: Props } {
  return { inputs: (state?.inputs ?? {}) as Props, outputs: (state?.outputs ?? {}) as Props };
}

/** Removes the CLI's color tags, such as `<{%fg 1%}>`. */
const plainText = (text: string) => text.replace(/<\{%[^%]*%\}>/g, "");

/** Converts the stack outputs from the CLI to values for display. Masks secrets. */
export function shownOutputs(
  outputs: Readonly<Record<string, { readonly value: unknown; readonly secret: boolean }>>,
): Record<string, Shown> {
  return Object.fromEntries(
    Object.entries(outputs).map(([key, { value, secret }]) => [
      key,
      secret ? "[secret]" : shown(value as Value),
    ]),
  );
}

/** A resource in the JSON output of a CLI preview. For an unchanged resource, the new state contains no outputs. */
type PrintedState = Readonly<Record<string, Shown>>;

interface CliPlan {
  readonly steps?: readonly {
    readonly op: string;
    readonly oldState?: PrintedState;
    readonly newState?: PrintedState;
  }[];
}

interface SavedPlan {
  readonly resourcePlans?: Readonly<
    Record<string, { readonly goal?: Readonly<Record<"inputDiff" | "outputDiff", object>> }>
  >;
}

/**
 * Environment variables that make a CLI preview print JSON, including unchanged resources. CLIs that do not support
 * these variables print plain text.
 */
export const PRINT_ALL = { PULUMI_OPTION_JSON: "true", PULUMI_OPTION_SHOW_SAMES: "true" };

/**
 * Returns true if an update after this preview would change neither an object nor the state. For example, a changed
 * resource option changes only the state.
 * @param plan content of the preview's plan file, which also shows changed secrets
 */
export function isNothingToDo(printed: string, plan: string): boolean {
  if (!printed.startsWith("{")) return false;
  const { steps = [] } = JSON.parse(printed) as CliPlan;
  const { resourcePlans = {} } = JSON.parse(plan) as SavedPlan;
  const stays = steps.every(({ op, oldState = {}, newState = {} }) => {
    if (op === "refresh") return isReadAsKnown(oldState, newState);
    return op === "same" && isDeepStrictEqual(options(oldState), options(newState));
  });
  const isEmpty = (changes: object | undefined) => Object.keys(changes ?? {}).length === 0;
  return (
    stays &&
    Object.values(resourcePlans).every(({ goal }) => isEmpty(goal?.inputDiff) && isEmpty(goal?.outputDiff))
  );
}

/**
 * Returns true if the CLI read the object and found no change. Returns false if the object has a secret, because the
 * CLI masks secrets, which hides their changes.
 */
const isReadAsKnown = (before: PrintedState, now: PrintedState): boolean =>
  !holds(now, "[secret]") &&
  isDeepStrictEqual(options(before), options(now)) &&
  isDeepStrictEqual([before.inputs, before.outputs], [now.inputs, now.outputs]);

/**
 * Returns a resource's options, that is, all state fields except the id, inputs, outputs, times, source position, stack
 * trace and empty dependencies.
 */
function options({
  id: _id,
  inputs: _inputs,
  outputs: _outputs,
  created: _created,
  modified: _modified,
  sourcePosition: _position,
  stackTrace: _trace,
  propertyDependencies = {},
  ...rest
}: PrintedState): PrintedState {
  const depending = Object.entries(propertyDependencies as Record<string, string[]>).filter(
    ([, urns]) => urns.length > 0,
  );
  return { ...rest, propertyDependencies: Object.fromEntries(depending) };
}
