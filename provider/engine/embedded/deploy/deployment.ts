import { type EngineError, ProtectedError, type UnsupportedUse } from "../../errors.ts";
import type { Diagnostic, Step } from "../../model.ts";
import type { Entry } from "../../state/snapshot.ts";
import { UrnPatterns } from "../../targets.ts";
import { knownProps, mapProps, type Props, UNKNOWN } from "../../value.ts";
import { changedFields } from "../plan/changedFields.ts";
import { planResource, type ResourcePlan } from "../plan/planResource.ts";
import { Claims } from "../plan/takenEntries.ts";
import { defaultProviderState, defaultProviderUrn } from "../program/defaultProvider.ts";
import { type Goal, goalReferences, type Scope } from "../program/goal.ts";
import type { Monitor, Registered } from "../program/monitorServer.ts";
import { addValues } from "../stepValues.ts";
import { deleteAll, leaveOut } from "./deletions.ts";
import {
  type DeploymentContext,
  type DeploymentOptions,
  deletionContext,
  writeState,
} from "./deploymentContext.ts";
import { executePlan } from "./executePlan.ts";
import { Limiter } from "./limiter.ts";
import { isUnchanged } from "./newState.ts";
import { requireKnown, Selection } from "./participants.ts";
import { registerComponent } from "./registerComponent.ts";
import { never } from "./stopSwitch.ts";

// Resources are planned side by side: one that depends on another is registered only after that one is done, so
// plans in the making never concern each other. More at once than this only wait for the one provider process.
const PLANNED_AT_ONCE = 8;

/** Makes what a program registers real, or in a dry run finds out what that would mean. */
export class Deployment implements Monitor {
  readonly scope: Scope;
  readonly unsupportedUses: UnsupportedUse[] = [];
  /** True once the program has registered everything and what is gone from it was deleted. */
  complete = false;
  /** Why the run's options do not fit the program; nothing more was done then. */
  misfit: EngineError | undefined;
  readonly #context: DeploymentContext;
  readonly #planning: Limiter;
  readonly #selection: Selection;
  readonly #replace: UrnPatterns;
  /** New resources that take no part in this run: there is nothing that others could depend on. */
  readonly #skipped = new Set<string>();

  constructor(options: DeploymentOptions) {
    const { snapshot, parallel, stack, project } = options;
    const claims = new Claims(snapshot);
    this.#context = {
      ...options,
      claims,
      limiter: new Limiter(parallel),
      replaced: new Map(),
      deleted: new Set(),
      recreate: new Set(),
      providerRef: "",
    };
    this.#planning = new Limiter(Math.min(parallel, PLANNED_AT_ONCE));
    this.#selection = new Selection(options.targets);
    this.#replace = new UrnPatterns(options.replace);
    this.scope = { stack, project, aliasOf: (urn) => claims.formerUrn(urn) };
    requireKnown(this.#replace.urns, (urn) => claims.knows(urn));
  }

  unsupported(uses: UnsupportedUse[]): void {
    this.unsupportedUses.push(...uses);
    if (!this.#context.dryRun) this.#context.stop.stop("unsupported");
  }

  diagnostic(diagnostic: Diagnostic): void {
    this.#context.log.diagnostic(diagnostic);
  }

  register(goal: Goal, uses: UnsupportedUse[]): Promise<Registered> {
    const { stop, dryRun } = this.#context;
    if (uses.length > 0) {
      this.unsupported(uses);
      return dryRun ? Promise.resolve({ urn: goal.urn, id: "", outputs: goal.props }) : never();
    }
    if (stop.reason) return never();
    return stop.track(this.#register(goal)).then((registered) => registered ?? never());
  }

  /** Undefined where the resource failed and the run stops. */
  async #register(goal: Goal): Promise<Registered | undefined> {
    const { log, stop, dryRun } = this.#context;
    log.hide(goal.props);
    const step: Step = { op: "create", urn: goal.urn, type: goal.type, name: goal.name, fields: [] };
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
      // A preview goes on, to find everything that is wrong at once.
      return { urn: goal.urn, id: "", outputs: mapProps(goal.props, () => UNKNOWN) };
    }
  }

  /** Answers at once what needs no provider; gives the plan for the rest. */
  async #begin(goal: Goal, step: Step): Promise<ResourcePlan | Registered> {
    const { claims, log, recreate } = this.#context;
    const old = claims.take(goal);
    const included = this.#selection.updates(goal.urn, goalReferences(goal));
    // What this run has deleted already must come back, target or not.
    const recreating = recreate.has(goal.urn) || (old !== undefined && recreate.has(old.state.urn));
    if (!included && !recreating) return old ? this.#leave(old, step) : this.#skip(goal);
    claims.rename(goal);
    log.step(step);
    this.#refuseSkipped(goal);
    if (!goal.custom) return registerComponent(this.#context, goal, old, step);
    return this.#plan(goal, old, recreating, step);
  }

  /** An existing resource that takes no part in this run stays as it is, under the urn it has. */
  #leave(old: Entry, step: Step): Registered {
    const { state } = old;
    this.#context.log.step({ ...step, op: "same", urn: state.urn, ...(state.id ? { id: state.id } : {}) });
    this.#context.claims.keep(state.urn, old, state);
    return { urn: state.urn, id: state.id ?? "", outputs: state.outputs ?? {} };
  }

  /** A new resource that takes no part in this run: the program goes on with values that are not known. */
  #skip(goal: Goal): Registered {
    this.#skipped.add(goal.urn);
    return { urn: goal.urn, id: "", outputs: {}, unknown: true };
  }

  #refuseSkipped(goal: Goal): void {
    const missing = goalReferences(goal).filter((urn) => this.#skipped.has(urn));
    if (missing.length === 0) return;
    throw new Error(
      `it depends on ${missing.join(", ")}, which does not exist yet and is not among the targets of this run; ` +
        "add it with --target, or take it out of --exclude",
    );
  }

  async #plan(goal: Goal, old: Entry | undefined, recreating: boolean, step: Step): Promise<ResourcePlan> {
    const { replaced, recreate, snapshot, claims } = this.#context;
    const plan = await planResource({
      provider: await this.#context.provider,
      goal,
      old,
      recreating,
      ownerReplaced: goal.deletedWith !== "" && replaced.has(goal.deletedWith),
      replaceAsked: this.#replace.has(goal.urn),
      entries: () => snapshot.entries(),
      done: (urn) => claims.kept(urn) !== undefined,
    });
    describePlan(plan, step);
    this.#context.held?.require(step);
    if (step.op === "replace") replaced.set(goal.urn, step);
    if (plan.op === "replace" && plan.deleteFirst) {
      const guarded = plan.deleteFirst.find((entry) => entry.state.protect);
      if (guarded) {
        const { urn } = guarded.state;
        throw new ProtectedError(`it would be replaced, and with it ${urn}, which is protected`, urn);
      }
      for (const entry of plan.deleteFirst) recreate.add(entry.state.urn);
    }
    return plan;
  }

  registerOutputs(urn: string, outputs: Props): void {
    const { log, dryRun, claims } = this.#context;
    const found = claims.kept(urn);
    if (!found) return;
    log.hide(outputs);
    const state = { ...found.state, outputs: dryRun ? outputs : knownProps(outputs) };
    claims.keep(urn, found, state);
    if (!isUnchanged(found.state, state)) writeState(this.#context, [{ put: found.key, state }]);
  }

  async finished(): Promise<void> {
    const { snapshot, stop, claims, replaced } = this.#context;
    await stop.settled();
    if (stop.reason || this.complete) return;
    try {
      this.#selection.requireKnown((urn) => claims.knows(urn));
    } catch (error) {
      this.misfit = error as EngineError;
      stop.stop("failed");
      return;
    }
    const entries = snapshot.entries();
    const deletable = this.#selection.deletable(entries.map(({ state }) => state));
    const gone = entries.filter(({ key, state }) => state.delete === true || !claims.isTouched(key));
    const condemned = gone.filter(({ state }) => deletable.has(state.urn));
    leaveOut(
      this.#context.log,
      gone.filter(({ state }) => !deletable.has(state.urn)),
    );
    const { held } = this.#context;
    const refuse = ({ urn }: { urn: string }): string | undefined => this.#selection.refusal(urn);
    try {
      for (const { state } of held ? condemned : []) held?.requireDeletion(state.urn);
    } catch (error) {
      this.misfit = error as EngineError;
      stop.stop("failed");
      return;
    }
    await deleteAll({ ...deletionContext(this.#context), refuse }, condemned, replaced);
    if (!stop.reason) this.complete = true;
  }

  /** Adds to every step of a dry run what its resource is before and after. */
  addValues(): void {
    const { log, snapshot, claims } = this.#context;
    addValues(log.steps, snapshot, claims);
  }

  /** The outputs of the stack's root resource. */
  stackOutputs(): Props {
    const root = this.#context.claims.all().find((state) => state.type === "pulumi:pulumi:Stack");
    return root?.outputs ?? {};
  }

  async #useDefaultProvider(): Promise<void> {
    await this.#context.provider;
    if (this.#context.providerRef !== "") return;
    const { stack, project, providerInputs, claims } = this.#context;
    const urn = defaultProviderUrn(stack, project);
    const { key, state: old } = claims.takeUrn(urn);
    const state = defaultProviderState(urn, providerInputs, old);
    this.#context.providerRef = `${urn}::${state.id}`;
    if (state !== old) writeState(this.#context, [{ put: key, state }]);
  }
}

/** Puts a plan into words. */
function describePlan(plan: ResourcePlan, step: Step): void {
  const again = plan.old !== undefined && (plan.op === "create" || plan.op === "import");
  step.op = plan.op === "replace" || again ? "replace" : plan.op;
  if (plan.op !== "same" && plan.op !== "import") step.fields = changedFields(plan.old?.state, plan.inputs);
  if (plan.op === "replace") step.replaceKeys = plan.keys;
  if (plan.op === "import") step.id = plan.found.id;
  else if (plan.old?.state.id) step.id = plan.old.state.id;
}
