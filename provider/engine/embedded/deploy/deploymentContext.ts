import type { Step } from "../../model.ts";
import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry, Mutation } from "../../state/snapshot.ts";
import { isStored } from "../../state/stateCodec.ts";
import { equal, type Props } from "../../value.ts";
import type { TakenEntries } from "../plan/takenEntries.ts";
import type { Goal } from "../program/goal.ts";
import type { DeletionContext } from "./deletions.ts";

/** What the parts of a deployment share. */
export interface DeploymentContext extends DeletionContext {
  readonly taken: TakenEntries;
  /** The steps of replacements, by URN: their old objects go. */
  readonly replaced: Map<string, Step>;
  /** URNs of resources whose object was deleted because it depends on a replaced one: they are made again. */
  readonly recreate: Set<string>;
  /** The reference to the default provider; empty before the first dynamic resource. */
  providerRef: string;
}

/** What the provider, or the program, says of an object. */
interface Found {
  readonly id?: string;
  readonly inputs: Props;
  readonly outputs: Props;
  readonly initErrors?: readonly string[];
}

/**
 * The state of a resource as the program wants it now.
 * @param old its state so far, whose times stay
 * @param changed whether the object is another one than before
 */
export function newState(
  goal: Goal,
  provider: string,
  { id, inputs, outputs, initErrors }: Found,
  old: ResourceState | undefined,
  changed: boolean,
): ResourceState {
  const now = new Date().toISOString();
  const state = {
    urn: goal.urn,
    custom: goal.custom,
    type: goal.type,
    id,
    inputs,
    outputs,
    parent: goal.parent,
    protect: goal.protect,
    dependencies: goal.dependencies,
    initErrors,
    provider,
    propertyDependencies: goal.custom ? goal.propertyDependencies : {},
    additionalSecretOutputs: goal.additionalSecretOutputs,
    customTimeouts: goal.customTimeouts,
    importID: goal.importId,
    retainOnDelete: goal.retainOnDelete,
    deletedWith: goal.deletedWith,
    created: old?.created ?? now,
    modified: changed || !old?.modified ? now : old.modified,
    ignoreChanges: goal.ignoreChanges,
    replaceOnChanges: goal.replaceOnChanges,
  };
  return stored(state) as ResourceState;
}

/** Notes what a resource is now, and writes it where the state holds something else. */
export function keepState(
  context: DeploymentContext,
  urn: string,
  old: Entry | undefined,
  state: ResourceState,
): void {
  const put = context.taken.keep(urn, old, state);
  if (!old || !equal(asValue(old.state), asValue(state))) writeState(context, [{ put, state }]);
}

/** Makes changes that no provider took part in; a dry run only notes that there are some. */
export function writeState({ snapshot, dryRun }: DeploymentContext, mutations: readonly Mutation[]): void {
  if (dryRun) snapshot.wouldChange();
  else snapshot.change(mutations);
}

const stored = (state: object) =>
  Object.fromEntries(Object.entries(state).filter(([key, value]) => isStored(key, value)));

const asValue = (state: ResourceState) => JSON.parse(JSON.stringify(stored(state))) as Props;
