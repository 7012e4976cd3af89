import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { UNKNOWN } from "../../../engineMarks.ts";
import {
  DYNAMIC_PROVIDER_TYPE,
  makeUrn,
  STACK_TYPE,
  STATE_IDENTITY_TYPE,
  UrnPatterns,
} from "../../../urn.ts";
import { EngineError, ProtectedError, type UnsupportedUse } from "../../errors.ts";
import {
  type FieldChange,
  holds,
  type Plan,
  type PreviewOptions,
  type Shown,
  type Step,
  type Writable,
} from "../../model.ts";
import { configProps } from "../../project.ts";
import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry } from "../../state/snapshot.ts";
import { changedFields, equal, knownProps, mapProps, type Props, shownValues } from "../../value.ts";
import {
  type Goal,
  goalReferences,
  type Monitor,
  type Registered,
  type Scope,
} from "../program/monitorServer.ts";
import type { ProcessSettings } from "../program/sdkProcess.ts";
import { Participants, requireKnown, TakenEntries } from "./participants.ts";
import { planResource, type ResourcePlan } from "./planResource.ts";
import { type DeletionContext, type DeploymentContext, Limiter } from "./runControl.ts";
import {
  deleteAll,
  executePlan,
  keepState,
  objectStep,
  registerComponent,
  reportUntouched,
  writeState,
} from "./steps.ts";

// Maximum number of resources that are planned at the same time. A program registers a resource after its dependencies,
// so concurrent plans are independent. A larger number would not be faster, since all plans wait for the single
// provider process.
const PLANNED_AT_ONCE = 8;

/** Returns a promise that never resolves. The program waits for this promise until the run stops the program. */
const never = (): Promise<never> => new Promise(() => {});

interface DeploymentOptions
  extends ProcessSettings,
    Pick<DeletionContext, "dryRun" | "snapshot" | "log" | "stop" | "provider"> {
  readonly parallel: number;
  readonly requested: PreviewOptions;
  readonly held: HeldPlan | undefined;
}

/**
 * Creates, updates and deletes objects for the resources that a program registers. In a dry run, only plans the
 * changes.
 */
export class Deployment implements Monitor {
  readonly scope: Scope;
  readonly unsupportedUses: UnsupportedUse[] = [];
  /**
   * The error that stops the run. It is set if a URN in the run's options matches no resource, or if the run would
   * delete a resource that the confirmed plan keeps.
   */
  misfit: EngineError | undefined;
  readonly #options: DeploymentOptions;
  readonly #context: DeploymentContext;
  readonly #planning: Limiter;
  readonly #participants: Participants;
  readonly #replace: UrnPatterns;
  /**
   * URNs of new resources that are excluded from this run. A resource that depends on an excluded new resource causes
   * an error.
   */
  readonly #skipped = new Set<string>();
  #finishing: Promise<void> | undefined;

  /** @throws EngineError (`target`) if the options require the replacement of a resource that is not in the state */
  constructor(options: DeploymentOptions) {
    const { snapshot, parallel, stack, project, requested } = options;
    const taken = new TakenEntries(snapshot);
    this.#options = options;
    this.#participants = new Participants(requested);
    this.#context = {
      ...options,
      taken,
      limiter: new Limiter(parallel),
      refuse: (urn) => this.#participants.refusal(urn),
      replaced: new Map(),
      deleted: new Set(),
      recreate: new Set(),
      providerRef: "",
    };
    this.#planning = new Limiter(Math.min(parallel, PLANNED_AT_ONCE));
    this.#replace = new UrnPatterns(requested.replace);
    this.scope = { stack, project: project.name, aliasOf: (urn) => taken.formerUrn(urn) };
    requireKnown(this.#replace.urns, (urn) => taken.knows(urn));
  }

  unsupported(uses: readonly UnsupportedUse[]): void {
    this.unsupportedUses.push(...uses);
    if (!this.#context.dryRun) this.#context.stop.stop("unsupported");
  }

  register(goal: Goal, uses: readonly UnsupportedUse[]): Promise<Registered> {
    const { stop, dryRun } = this.#context;
    if (uses.length > 0) {
      this.unsupported(uses);
      return dryRun ? Promise.resolve({ urn: goal.urn, id: "", outputs: goal.props }) : never();
    }
    if (stop.reason) return never();
    return stop.track(this.#register(goal)).then((registered) => registered ?? never());
  }

  async #register(goal: Goal): Promise<Registered | undefined> {
    const { log, stop, dryRun } = this.#context;
    log.hide(goal.props);
    const step: Writable<Step> = { ...objectStep(goal), op: "create" };
    try {
      if (goal.custom) await this.#useDefaultProvider();
      const plan = await this.#planning.run(async () => (stop.reason ? undefined : this.#begin(goal, step)));
      if (!plan || "urn" in plan) return plan;
      const registered = await executePlan(this.#context, goal, plan, step);
      if (!registered && step.error === undefined) log.drop(step);
      return registered;
    } catch (error) {
      if (!log.steps.includes(step)) log.step(step);
      log.fail(step, error as Error);
      if (!dryRun) {
        stop.stop("failed");
        return undefined;
      }
      // A preview continues after an error, so that it reports all errors in one run.
      return { urn: goal.urn, id: "", outputs: mapProps(goal.props, () => UNKNOWN) };
    }
  }

  /**
   * Stores the state entry of the provider instance that all dynamic resources of the stack share. The entry contains
   * the configuration of the stack.
   */
  async #useDefaultProvider(): Promise<void> {
    const { stack, project, config } = this.#options;
    await this.#context.provider.start();
    if (this.#context.providerRef !== "") return;
    const type = DYNAMIC_PROVIDER_TYPE;
    const urn = makeUrn(stack, project.name, "", type, "default");
    const { key, state: old } = this.#context.taken.takeUrn(urn);
    const id = old?.id ?? randomUUID();
    const inputs = configProps(config);
    this.#context.providerRef = `${urn}::${id}`;
    if (old && equal(old.inputs ?? {}, inputs)) return;
    const modified = new Date().toISOString();
    const created = old?.created ?? modified;
    const state = { urn, custom: true, id, type, inputs, outputs: inputs, created, modified };
    writeState(this.#context, [{ put: key, state }]);
  }

  /**
   * Starts the registration of a resource. Returns the plan that the provider must execute, or the response to the
   * program if the provider is not needed.
   */
  async #begin(goal: Goal, step: Writable<Step>): Promise<ResourcePlan | Registered> {
    const { taken, log, recreate } = this.#context;
    const old = taken.take(goal);
    const included = this.#participants.updates(goal.urn, goalReferences(goal));
    // If this run has already deleted a resource, it must create the resource again, even if the resource is not a
    // target.
    const recreating = recreate.has(goal.urn) || (old !== undefined && recreate.has(old.state.urn));
    if (!included && !recreating) return old ? this.#leave(old, step) : this.#skip(goal);
    taken.rename(goal);
    log.step(step);
    this.#refuseSkipped(goal);
    if (!goal.custom) return registerComponent(this.#context, goal, old, step);
    return this.#plan(goal, old, recreating, step);
  }

  /**
   * Keeps the state entry of an existing resource that is excluded from this run. The resource keeps its URN from the
   * state.
   */
  #leave(old: Entry, step: Step): Registered {
    const { urn, id = "", outputs = {} } = old.state;
    this.#context.log.step({ ...step, op: "same", urn, ...(id && { id }) });
    this.#context.taken.keep(urn, old, old.state);
    return { urn, id, outputs };
  }

  /** Skips a new resource that is excluded from this run. The program continues with unknown values. */
  #skip({ urn }: Goal): Registered {
    this.#skipped.add(urn);
    return { urn, id: "", outputs: {}, unknown: true };
  }

  #refuseSkipped(goal: Goal): void {
    const missing = goalReferences(goal).filter((urn) => this.#skipped.has(urn));
    if (missing.length === 0) return;
    throw new Error(
      `it depends on ${missing.join(", ")}, which does not exist yet and is not among the targets of this run; ` +
        "add it with --target, or remove it from --exclude",
    );
  }

  async #plan(
    goal: Goal,
    old: Entry | undefined,
    recreating: boolean,
    step: Writable<Step>,
  ): Promise<ResourcePlan> {
    const { replaced, recreate } = this.#context;
    const replaceRequested = this.#replace.has(goal.urn);
    const plan = await planResource({ ...this.#context, goal, old, recreating, replaceRequested });
    describePlan(plan, step);
    this.#options.held?.require(step);
    if (step.op === "replace") replaced.set(goal.urn, step);
    if (plan.op === "replace" && plan.deleteFirst) {
      const guarded = plan.deleteFirst.find((entry) => entry.state.protect);
      if (guarded) {
        const { urn } = guarded.state;
        throw new ProtectedError(`its replacement would also replace ${urn}, which is protected`, urn);
      }
      for (const entry of plan.deleteFirst) recreate.add(entry.state.urn);
    }
    return plan;
  }

  registerOutputs(urn: string, outputs: Props): void {
    const { log, dryRun, taken } = this.#context;
    const found = taken.kept(urn);
    if (!found) return;
    log.hide(outputs);
    const known = dryRun ? outputs : knownProps(outputs);
    keepState(this.#context, urn, found, { ...found.state, outputs: known });
  }

  finished(): Promise<void> {
    this.#finishing ??= this.#finish();
    return this.#finishing;
  }

  async #finish(): Promise<void> {
    const { log, snapshot, stop, taken, replaced } = this.#context;
    await stop.settled();
    if (stop.reason) return;
    const { condemned, staying } = this.#participants.divide(taken.left(), snapshot);
    try {
      this.#participants.requireKnown((urn) => taken.knows(urn));
      for (const { state } of condemned) this.#options.held?.requireDeletion(state.urn);
    } catch (error) {
      this.misfit = error as EngineError;
      stop.stop("failed");
      return;
    }
    reportUntouched(log, staying);
    await deleteAll(this.#context, condemned, replaced);
  }

  /**
   * Adds values to every step of a dry run: the resource's values before and after the change. The values before the
   * change come from the snapshot, since a dry run does not change the snapshot.
   */
  addValues(): void {
    const { log, snapshot, taken } = this.#context;
    const left = new Map(taken.left().map(({ state }) => [objectKey(state), state]));
    for (const step of log.steps) {
      const kept = step.op === "delete" ? undefined : taken.kept(step.urn);
      const before = kept ? snapshot.get(kept.key) : left.get(objectKey(step));
      // A resource that is excluded from the run does not change.
      const after = kept?.state ?? (step.op === "same" ? before : undefined);
      if (before) step.before = shownValues(before);
      if (after) step.after = shownValues(after);
    }
  }

  stackOutputs(): Props {
    return this.#context.taken.all().find(({ type }) => type === STACK_TYPE)?.outputs ?? {};
  }
}

function describePlan(plan: ResourcePlan, step: Writable<Step>): void {
  const again = plan.old !== undefined && (plan.op === "create" || plan.op === "import");
  step.op = plan.op === "replace" || again ? "replace" : plan.op;
  if (plan.op !== "same" && plan.op !== "import") step.fields = changedFields(plan.old?.state, plan.inputs);
  if (plan.op === "replace") step.replaceKeys = plan.keys;
  if (step.op === "replace" && plan.old?.state.retainOnDelete) step.retained = true;
  if (plan.op === "import") step.id = plan.found.id;
  else if (plan.old?.state.id) step.id = plan.old.state.id;
}

// The key includes the object's id. A deposed object, that is, an old object that a replacement did not delete, has the
// same URN as the new object.
const objectKey = ({ urn, id = "" }: Pick<ResourceState, "urn" | "id">) => `${urn} ${id}`;

/**
 * A confirmed plan from which the run must not deviate. The run checks each step against the plan, because a program
 * may declare different resources in the run than in the preview.
 */
export class HeldPlan {
  readonly #steps = new Map<string, Step>();

  constructor({ steps }: Plan) {
    // A replacement has two steps with the same URN. The step that is not a deletion takes precedence.
    for (const step of steps) if (step.op !== "delete") this.#steps.set(step.urn, step);
    for (const step of steps) if (!this.#steps.has(step.urn)) this.#steps.set(step.urn, step);
  }

  /**
   * @throws EngineError (`not_planned`) if the step differs from the plan. Values that were unknown in the plan are not
   *   compared.
   */
  require(step: Step): void {
    if (step.type === STATE_IDENTITY_TYPE) return;
    const planned = this.#steps.get(step.urn);
    if (!planned) throw misfit(`${step.op} is not in the plan`);
    const isOpen = planned.fields.some((field) => hasUnknown(field.new));
    if (planned.op !== step.op && !(isOpen && (step.op === "same" || step.op === "update"))) {
      throw misfit(`the plan has ${planned.op}, but the run requires ${step.op}`);
    }
    const changed = new Set(step.fields.map(({ path }) => path));
    const left = planned.fields.find(({ path }) => !changed.has(path));
    if (left && !isOpen) throw notAs(left);
    const expected = new Map(planned.fields.map((field) => [field.path, field]));
    for (const field of step.fields) {
      const other = expected.get(field.path) ?? unknownAbove(planned.fields, field.path);
      if (!other || !(hasUnknown(other.new) || isDeepStrictEqual(other.new, field.new))) throw notAs(field);
    }
  }

  /** @throws EngineError (`not_planned`) if the plan does not delete or replace the resource */
  requireDeletion(urn: string): void {
    const planned = this.#steps.get(urn);
    if (planned && planned.op !== "delete" && planned.op !== "replace") {
      throw misfit(`the plan has ${planned.op}, but the run requires delete`);
    }
  }
}

const misfit = (what: string) =>
  new EngineError("not_planned", `${what}: the program declares other resources than in its preview`);

const notAs = ({ path }: FieldChange) => misfit(`${path} differs from the plan`);

/**
 * Returns the planned change to the object that contains the field `path`, if parts of this object were unknown in the
 * plan. Returns undefined otherwise.
 */
const unknownAbove = (fields: readonly FieldChange[], path: string) =>
  fields.find((field) => path.startsWith(`${field.path}.`) && hasUnknown(field.new));

const hasUnknown = (value: Shown | undefined) => holds(value, "[unknown]");
