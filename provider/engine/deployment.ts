import { changedFields } from "./changedFields.ts";
import { defaultProviderState, defaultProviderUrn } from "./defaultProvider.ts";
import { type DeletionContext, deleteAll, deleteEntry } from "./deletions.ts";
import { type DynamicProvider, PartialFailure, ProviderGoneError } from "./dynamicProvider.ts";
import type { UnsupportedUse } from "./errors.ts";
import { fieldDiff } from "./fieldDiff.ts";
import { Limiter } from "./limiter.ts";
import type { Diagnostic, Step } from "./model.ts";
import type { Monitor, Registered } from "./monitorServer.ts";
import { isUnchanged, newState } from "./newState.ts";
import { planResource, type ResourcePlan } from "./planResource.ts";
import type { Goal, Scope } from "./registration.ts";
import type { ResourceState } from "./resourceState.ts";
import type { RunLog } from "./runLog.ts";
import type { Entry, Mutation, Snapshot } from "./snapshot.ts";
import { never, type StopSwitch } from "./stopSwitch.ts";
import { equal, mapProps, markNamed, markSecrets, type Props, UNKNOWN } from "./value.ts";

/** What a deployment needs. */
export type DeploymentOptions = {
  stack: string;
  project: string;
  dryRun: boolean;
  parallel: number;
  snapshot: Snapshot;
  log: RunLog;
  stop: StopSwitch;
  provider: Promise<DynamicProvider>;
  /** The configuration, which the default provider's entry in the state holds. */
  providerInputs: Props;
};

// Resources are planned side by side: one that depends on another is registered only after that one is done, so
// plans in the making never concern each other. More at once than this only wait for the one provider process.
const PLANNED_AT_ONCE = 8;

/** Makes what a program registers real, or in a dry run finds out what that would mean. */
export class Deployment implements Monitor {
  readonly scope: Scope;
  readonly unsupportedUses: UnsupportedUse[] = [];
  /** True once the program has registered everything and what is gone from it was deleted. */
  complete = false;
  readonly #options: DeploymentOptions;
  readonly #olds = new Map<string, Entry>();
  readonly #registered = new Map<string, { key: string; state: ResourceState }>();
  readonly #touched = new Set<string>();
  readonly #aliases = new Map<string, string>();
  readonly #replaced = new Map<string, Step>();
  readonly #deleted = new Set<string>();
  readonly #recreate = new Set<string>();
  readonly #limiter: Limiter;
  readonly #planning: Limiter;
  #providerRef: string | undefined;

  constructor(options: DeploymentOptions) {
    this.#options = options;
    this.#limiter = new Limiter(options.parallel);
    this.#planning = new Limiter(Math.min(options.parallel, PLANNED_AT_ONCE));
    this.scope = {
      stack: options.stack,
      project: options.project,
      aliasOf: (urn) => this.#aliases.get(urn),
    };
    for (const entry of options.snapshot.entries()) {
      if (!entry.state.delete) this.#olds.set(entry.state.urn, entry);
    }
  }

  unsupported(uses: UnsupportedUse[]): void {
    this.unsupportedUses.push(...uses);
    if (!this.#options.dryRun) this.#options.stop.stop("unsupported");
  }

  diagnostic(diagnostic: Diagnostic): void {
    this.#options.log.diagnostic(diagnostic);
  }

  register(goal: Goal, uses: UnsupportedUse[]): Promise<Registered> {
    const { stop, dryRun } = this.#options;
    if (uses.length > 0) {
      this.unsupported(uses);
      return dryRun ? Promise.resolve({ urn: goal.urn, id: "", outputs: goal.props }) : never();
    }
    if (stop.reason) return never();
    return stop.track(this.#register(goal)).then((registered) => registered ?? never());
  }

  /** Undefined where the resource failed and the run stops. */
  async #register(goal: Goal): Promise<Registered | undefined> {
    const { log, stop, dryRun } = this.#options;
    log.hide(goal.props);
    const step: Step = { op: "create", urn: goal.urn, type: goal.type, name: goal.name, fields: [] };
    try {
      if (!goal.custom) return await this.#planning.run(async () => this.#component(goal, log.step(step)));
      const plan = await this.#planning.run(async () => {
        if (stop.reason) return undefined;
        log.step(step);
        return this.#plan(goal, step);
      });
      if (!plan) return undefined;
      const registered = await this.#execute(goal, plan, step);
      if (!registered && step.error === undefined) log.drop(step);
      return registered;
    } catch (error) {
      log.fail(step, error as Error);
      if (!dryRun) {
        stop.stop("failed");
        return undefined;
      }
      // A preview goes on, to find everything that is wrong at once.
      return { urn: goal.urn, id: "", outputs: mapProps(goal.props, () => UNKNOWN) };
    }
  }

  #component(goal: Goal, step: Step): Registered {
    const { snapshot, dryRun } = this.#options;
    const old = this.#claim(goal);
    const outputs = old?.state.outputs ?? {};
    const changed = !equal(old?.state.inputs ?? {}, goal.props);
    step.op = !old ? "create" : changed ? "update" : "same";
    if (changed) step.fields = fieldDiff(old?.state.inputs, goal.props);
    const state = newState(goal, "", { inputs: goal.props, outputs }, old?.state, changed);
    const key = this.#keep(goal, old, state);
    if (!dryRun && !(old && isUnchanged(old.state, state))) snapshot.change([{ put: key, state }]);
    return { urn: goal.urn, id: "", outputs: goal.props };
  }

  registerOutputs(urn: string, outputs: Props): void {
    const { snapshot, log, dryRun } = this.#options;
    const found = this.#registered.get(urn);
    if (!found) return;
    log.hide(outputs);
    const state = { ...found.state, outputs };
    this.#registered.set(urn, { key: found.key, state });
    if (!dryRun && !isUnchanged(found.state, state)) snapshot.change([{ put: found.key, state }]);
  }

  async #plan(goal: Goal, step: Step): Promise<ResourcePlan> {
    const provider = await this.#options.provider;
    this.#useDefaultProvider();
    const old = this.#claim(goal);
    const plan = await planResource({
      provider,
      goal,
      old,
      recreating: this.#recreate.has(goal.urn) || (old !== undefined && this.#recreate.has(old.state.urn)),
      ownerReplaced: goal.deletedWith !== "" && this.#replaced.has(goal.deletedWith),
      entries: () => this.#options.snapshot.entries(),
      done: (urn) => this.#registered.has(urn),
    });
    const replacing = plan.op === "replace" || (plan.op === "create" && plan.old !== undefined);
    step.op = replacing ? "replace" : plan.op;
    if (plan.op !== "same") step.fields = changedFields(plan.old?.state, plan.inputs);
    if (plan.op === "replace") step.replaceKeys = plan.keys;
    if (plan.old?.state.id) step.id = plan.old.state.id;
    if (replacing) this.#replaced.set(goal.urn, step);
    if (plan.op === "replace" && plan.deleteFirst) {
      for (const entry of plan.deleteFirst) this.#recreate.add(entry.state.urn);
      const guarded = plan.deleteFirst.find((entry) => entry.state.protect);
      if (guarded) {
        throw new Error(`it would be replaced, and with it ${guarded.state.urn}, which is protected`);
      }
    }
    return plan;
  }

  async #execute(goal: Goal, plan: ResourcePlan, step: Step): Promise<Registered | undefined> {
    const { snapshot, dryRun, log } = this.#options;
    const old = plan.old?.state;
    const { inputs } = plan;
    const ref = this.#providerRef ?? "";
    if (plan.op === "same" || dryRun) {
      const outputs = plan.op === "same" ? this.#marked(goal, old?.outputs ?? {}) : inputs;
      const id = plan.op === "same" || plan.op === "update" ? (old?.id ?? "") : "";
      const state = newState(goal, ref, { inputs, outputs, id }, old, false);
      const key = this.#keep(goal, plan.old, state);
      if (!dryRun && old && !isUnchanged(old, state)) snapshot.change([{ put: key, state }]);
      return { urn: goal.urn, id, outputs };
    }
    if (plan.op === "replace" && plan.deleteFirst) {
      if (!(await this.#deleteFirst([...plan.deleteFirst].reverse(), plan.old, step))) return undefined;
    }
    return this.#limiter.run(async () => {
      if (this.#options.stop.reason) {
        if (plan.op === "replace" && plan.deleteFirst)
          step.error = "stopped between its deletion and its creation";
        return undefined;
      }
      const finish = log.start(step.op, step);
      try {
        const registered = await this.#apply(goal, plan, step);
        finish();
        return registered;
      } catch (error) {
        finish((error as Error).message);
        throw error;
      }
    });
  }

  /** Creates or updates the real object. Throws what the provider throws, after noting what it left. */
  async #apply(goal: Goal, plan: ResourcePlan, step: Step): Promise<Registered> {
    const { snapshot, log } = this.#options;
    const provider = await this.#options.provider;
    const old = plan.old?.state;
    const { inputs } = plan;
    const ref = this.#providerRef ?? "";
    const update = plan.op === "update" && old !== undefined;
    const before = { inputs, outputs: update ? (old.outputs ?? {}) : {}, id: update ? (old.id ?? "") : "" };
    const pending = newState(goal, ref, before, update ? old : undefined, true);
    const operation = await snapshot.begin(update ? "updating" : "creating", pending);
    let found: { id: string; outputs: Props };
    let failure: PartialFailure | undefined;
    try {
      found = update
        ? { id: old.id ?? "", ...(await provider.update(goal, old.id ?? "", oldProps(old), inputs)) }
        : await provider.create(goal, inputs);
    } catch (error) {
      if (!(error instanceof PartialFailure)) {
        if (!(error instanceof ProviderGoneError)) await snapshot.end(operation, []);
        throw error;
      }
      failure = error;
      found = { id: error.id, outputs: error.props };
    }
    const outputs = this.#marked(goal, markSecrets(found.outputs, inputs));
    log.hide(outputs);
    const initErrors = failure ? (failure.reasons.length > 0 ? failure.reasons : [failure.message]) : [];
    const state = newState(
      goal,
      ref,
      { inputs, outputs, id: found.id, initErrors },
      update ? old : undefined,
      true,
    );
    const key = this.#keep(goal, update ? plan.old : undefined, state);
    const mutations: Mutation[] = [{ put: key, state }];
    if (!update && plan.old) mutations.push(this.#retire(plan.old));
    await snapshot.end(operation, mutations);
    step.id = found.id;
    if (failure) throw new Error([failure.message, ...failure.reasons].join("; "));
    return { urn: goal.urn, id: found.id, outputs };
  }

  /** What becomes of the old object's entry once the new one is there. */
  #retire(old: Entry): Mutation {
    const now = this.#options.snapshot.get(old.key) ?? old.state;
    if (now.pendingReplacement) return { drop: old.key };
    return { put: old.key, state: { ...now, delete: true } };
  }

  async #deleteFirst(dependents: Entry[], old: Entry, step: Step): Promise<boolean> {
    const context = this.#deletion();
    for (const entry of [...dependents, old]) {
      if (this.#options.stop.reason) return false;
      const current = this.#options.snapshot.get(entry.key);
      if (!current || current.pendingReplacement) continue;
      const after: Mutation = { put: entry.key, state: { ...current, pendingReplacement: true } };
      const deleted = await this.#limiter.run(() => deleteEntry(context, entry, after, step));
      if (!deleted) return false;
    }
    return true;
  }

  async finished(): Promise<void> {
    const { snapshot, stop } = this.#options;
    await stop.settled();
    if (stop.reason || this.complete) return;
    const condemned = snapshot
      .entries()
      .filter(({ key, state }) => state.delete === true || !this.#touched.has(key));
    await deleteAll(this.#deletion(), condemned, this.#replaced);
    if (!stop.reason) this.complete = true;
  }

  /** The outputs of the stack's root resource. */
  stackOutputs(): Props {
    for (const { state } of this.#registered.values()) {
      if (state.type === "pulumi:pulumi:Stack") return state.outputs ?? {};
    }
    return {};
  }

  #deletion(): DeletionContext {
    const { snapshot, log, stop, dryRun, provider } = this.#options;
    const shared = { snapshot, log, stop, dryRun, limiter: this.#limiter, deleted: this.#deleted };
    return { provider: () => provider, ...shared };
  }

  /** Finds the resource's entry, by its urn or a former one. Throws where the urn was registered already. */
  #claim(goal: Goal): Entry | undefined {
    if (this.#registered.has(goal.urn)) {
      throw new Error(`two resources of the program have the urn ${goal.urn}; give one of them another name`);
    }
    for (const urn of [goal.urn, ...goal.aliases]) {
      const old = this.#olds.get(urn);
      if (!old) continue;
      this.#olds.delete(urn);
      this.#touched.add(old.key);
      if (urn !== goal.urn) {
        this.#aliases.set(goal.urn, urn);
        this.#options.snapshot.rename(urn, goal.urn);
      }
      // An earlier step of this run may have changed the entry.
      return { key: old.key, state: this.#options.snapshot.get(old.key) ?? old.state };
    }
    return undefined;
  }

  #keep(goal: Goal, old: Entry | undefined, state: ResourceState): string {
    const key = old?.key ?? this.#options.snapshot.newKey();
    this.#touched.add(key);
    this.#registered.set(goal.urn, { key, state });
    return key;
  }

  #marked(goal: Goal, outputs: Props): Props {
    return markNamed(outputs, goal.additionalSecretOutputs);
  }

  #useDefaultProvider(): void {
    if (this.#providerRef !== undefined) return;
    const { stack, project, snapshot, providerInputs, dryRun } = this.#options;
    const urn = defaultProviderUrn(stack, project);
    const old = this.#olds.get(urn);
    const key = old?.key ?? snapshot.newKey();
    const state = defaultProviderState(urn, providerInputs, old?.state);
    this.#touched.add(key);
    this.#olds.delete(urn);
    this.#providerRef = `${urn}::${state.id}`;
    if (!dryRun && state !== old?.state) snapshot.change([{ put: key, state }]);
  }
}

function oldProps(state: ResourceState): { inputs: Props; outputs: Props } {
  return { inputs: state.inputs ?? {}, outputs: state.outputs ?? {} };
}
