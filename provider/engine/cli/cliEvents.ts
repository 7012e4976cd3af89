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
  /** False for a component, which has no object. */
  readonly custom: boolean;
  readonly finish: (error?: string) => void;
}

/** Turns the CLI's events into the steps and messages that the embedded engine would give. */
export class CliEvents {
  readonly #log: RunLog;
  readonly #refresh: boolean;
  readonly #planning: boolean;
  readonly #values: boolean;
  /** By URN; those of old objects that an earlier replacement has not deleted, by their id too. */
  readonly #steps = new Map<string, Writable<Step>>();
  readonly #replaced = new Set<string>();
  readonly #running = new Map<string, Operation>();
  readonly #ended = new Set<Step>();
  readonly #errors = new Map<string, string>();
  /** Warnings that are about no resource: the CLI says some of them each time it starts a plugin. */
  readonly #warned = new Set<string>();
  /** Inputs of provider instances by the references to them; empty until the CLI tells of the instance. */
  readonly #providers = new Map<string, Record<string, Shown>>();

  /** The outputs of the stack's root resource; undefined where no event told them. */
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

  /** All steps, failures included; where the run did not finish, without those that were only begun. */
  steps(finished: boolean): Step[] {
    const steps = [...this.#steps.values()];
    if (finished) return steps;
    // Of a component's end the CLI tells only where the program comes to register its outputs.
    const begun = [...this.#running.values()].filter(({ custom }) => custom).map(({ step }) => step);
    return steps.filter((step) => this.#ended.has(step) || !begun.includes(step));
  }

  #diagnostic(event: NonNullable<CliEvent["diagnosticEvent"]>): void {
    if (event.ephemeral) return;
    const severity = event.severity === "info#err" ? "info" : event.severity;
    // The URN says whose error it is; the text need not.
    const own = event.urn ? /^\S+ resource '[^']*'(:| has a problem:) / : /^$/;
    const message = plainText(event.message).trimEnd().replace(own, "");
    if (message === "" || (severity as string) === "debug") return;
    // The errors of single resources have said it before.
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
    // A replacement is told of three times; the middle one does nothing.
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
    // The CLI tells of a new resource that is no target as unchanged, though there is no object.
    else if (metadata.op === "same" && metadata.new?.custom) this.#steps.delete(step.urn);
    if (step.type === STACK_TYPE && metadata.new) this.outputs = shownProps(metadata.new.outputs as Props);
    this.#end(metadata, step, undefined);
  }

  #failed(metadata: StepEventMetadata): void {
    const step = this.#step(metadata);
    if (!step) return;
    step.error = this.#errors.get(step.urn) ?? "it failed";
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
      // The credential of a default instance is that of the stack, which gatehouse has too.
      const told = inputs.filter(([, value]) => !(isDefaultInstance(urn) && holds(value, "[secret]")));
      Object.assign(this.#provider(`${urn}::${state.id}`), Object.fromEntries(told));
    }
  }

  #provider(reference: string): Record<string, Shown> {
    const known = this.#providers.get(reference) ?? {};
    this.#providers.set(reference, known);
    return known;
  }

  /** The event of a replacement's deletion knows the old object alone; that of an import gives the read one as old. */
  #addValues(step: Writable<Step>, { op, old, new: now }: StepEventMetadata): void {
    if (old && op !== "import") step.before ??= this.#valuesOf(old);
    if (now && op !== "delete-replaced") step.after = this.#valuesOf(now);
  }

  #valuesOf(state: NonNullable<StepEventMetadata["old"]>): ResourceValues {
    const values = shownValues({ ...propsOf(state), retainOnDelete: state.retainOnDelete === true });
    const { provider = "" } = state;
    // All dynamic resources have one instance, which says nothing.
    const isTold = provider !== "" && urnType(urnOfProvider(provider)) !== DYNAMIC_PROVIDER_TYPE;
    return isTold ? { ...values, provider: this.#provider(provider) } : values;
  }

  /** The step that an event is about; undefined for default providers, which are not shown. */
  #step(metadata: StepEventMetadata, isRead = true): Writable<Step> | undefined {
    if (isProviderState(metadata) && isDefaultInstance(metadata.urn)) return undefined;
    // A refresh before an update shows in the steps of the update.
    let op = this.#refresh ? refreshOp(metadata, isRead) : OPS[metadata.op];
    if (!op) return undefined;
    let key = metadata.urn;
    if (this.#isLeftOver(metadata)) {
      op = "delete";
      key = objectKey(metadata);
    }
    let step = this.#steps.get(key);
    // A program that is run for its providers' settings is told of once more.
    if (step && this.#refresh && this.#ended.has(step)) return undefined;
    if (!step) {
      step = { op, urn: metadata.urn, type: metadata.type, name: urnName(metadata.urn), fields: [] };
      this.#steps.set(key, step);
    }
    // One resource has several events; a replacement shows as one step.
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

  /** True for an old object whose replacement an earlier run has made: it goes even where the new one stays as it is. */
  #isLeftOver(metadata: StepEventMetadata): boolean {
    if (metadata.op !== "delete-replaced") {
      if (OPS[metadata.op] === "replace") this.#replaced.add(objectKey(metadata));
      return false;
    }
    return metadata.old?.delete === true && !this.#replaced.has(objectKey(metadata));
  }
}

const objectKey = ({ urn, old }: StepEventMetadata) => `${urn} ${old?.id ?? ""}`;

/** What a refresh does; undefined for what is not in the state. @param isRead false before the object was read */
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
  // The CLI masks secrets before it tells them: where nothing else differs, one of them does.
  return Object.entries(now.inputs)
    .filter(([, value]) => value === "[secret]")
    .map(([path]) => ({ path, old: "[secret]", new: "[secret]" }));
}

function propsOf(state: StepEventMetadata["old"]): { inputs: Props; outputs: Props } {
  return { inputs: (state?.inputs ?? {}) as Props, outputs: (state?.outputs ?? {}) as Props };
}

/** Without colors, which come as tags like <{%fg 1%}>. */
const plainText = (text: string) => text.replace(/<\{%[^%]*%\}>/g, "");

/** The stack's outputs as the CLI gives them, secrets masked. */
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

/** A resource as a preview of the CLI tells it; the new state of one that stays has no outputs. */
type ToldState = Readonly<Record<string, Shown>>;

interface CliPlan {
  readonly steps?: readonly {
    readonly op: string;
    readonly oldState?: ToldState;
    readonly newState?: ToldState;
  }[];
}

interface SavedPlan {
  readonly resourcePlans?: Readonly<
    Record<string, { readonly goal?: Readonly<Record<"inputDiff" | "outputDiff", object>> }>
  >;
}

/** Settings by which a preview of the CLI prints JSON, unchanged resources included. CLIs without them print a text. */
export const TELL_ALL = { PULUMI_OPTION_JSON: "true", PULUMI_OPTION_SHOW_SAMES: "true" };

/**
 * True where a preview found nothing to do, and nothing to write to the state, such as another option of a resource.
 * @param plan the plan that it saved, which compares secrets too
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

/** False where a secret was read: all are told as the same word, so nobody knows whether it changed. */
const isReadAsKnown = (before: ToldState, now: ToldState): boolean =>
  !holds(now, "[secret]") &&
  isDeepStrictEqual(options(before), options(now)) &&
  isDeepStrictEqual([before.inputs, before.outputs], [now.inputs, now.outputs]);

/** A resource's options: all but its values, its place in the program, and dependencies on nothing. */
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
}: ToldState): ToldState {
  const depending = Object.entries(propertyDependencies as Record<string, string[]>).filter(
    ([, urns]) => urns.length > 0,
  );
  return { ...rest, propertyDependencies: Object.fromEntries(depending) };
}
