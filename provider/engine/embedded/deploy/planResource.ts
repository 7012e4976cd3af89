import { PROVIDER_KEY, UNKNOWN } from "../../../engineMarks.ts";
import { ProtectedError } from "../../errors.ts";
import { type ResourceState, topologicalOrder, withDependents } from "../../state/resourceState.ts";
import type { Entry, Snapshot } from "../../state/snapshot.ts";
import {
  changedFields,
  changedKeys,
  containsUnknown,
  type Known,
  markSecrets,
  type Props,
  plainProps,
} from "../../value.ts";
import type { Goal } from "../program/monitorServer.ts";
import type { KnownObject, ProviderDiff, ProviderProcess } from "../program/providerProcess.ts";
import type { TakenEntries } from "./participants.ts";

/**
 * The reason for a replacement, in place of a property name, if the initialization of the object failed and
 * `replaceOnChanges` contains `*`.
 */
const INIT_ERROR_KEY = "#initerror";

export type ResourcePlan =
  | { readonly op: "create"; readonly inputs: Props; readonly old: Entry | undefined }
  | { readonly op: "same" | "update"; readonly inputs: Props; readonly old: Entry }
  | ImportPlan
  | {
      readonly op: "replace";
      readonly inputs: Props;
      readonly old: Entry;
      /** The inputs that force the replacement. */
      readonly keys: readonly string[];
      /**
       * Dependents to delete before the old object, in the order of their creation. Undefined if the run creates the
       * new object before it deletes the old object.
       */
      readonly deleteFirst: readonly Entry[] | undefined;
    };

export interface ImportPlan {
  readonly op: "import";
  readonly inputs: Props;
  readonly old: Entry | undefined;
  readonly found: { readonly id: string; readonly outputs: Props };
}

interface PlanInput {
  readonly provider: ProviderProcess;
  readonly snapshot: Snapshot;
  readonly taken: TakenEntries;
  /** The URNs of resources that this run replaces. */
  readonly replaced: ReadonlyMap<string, unknown>;
  readonly goal: Goal;
  readonly old: Entry | undefined;
  /** True if this run has already deleted the old object, because the old object depends on a replaced object. */
  readonly recreating: boolean;
  readonly replaceRequested: boolean;
}

/** @throws Error if an input is invalid; ProtectedError if a protected resource would be replaced */
export async function planResource(input: PlanInput): Promise<ResourcePlan> {
  const { provider, goal, old } = input;
  if (wantsImport(goal, old)) {
    refuseProtected(goal, old);
    return planImport(provider, goal, old);
  }
  if (!old || input.recreating) {
    return { op: "create", inputs: await provider.check(goal, {}, goal.props), old };
  }
  const oldInputs = old.state.inputs ?? {};
  const wanted = ignoreChanges(goal.props, oldInputs, goal.ignoreChanges);
  const inputs = await provider.check(goal, oldInputs, wanted);
  if (input.replaceRequested || old.state.taint === true) {
    // The run ignores the result of `diff`, but the call is required: in this call, the provider receives the object to
    // replace.
    await provider.diff(goal, old.state, inputs);
    return replacement(input, old, ["id"], false);
  }
  if (input.replaced.has(goal.deletedWith)) return replacement(input, old, ["deletedWith"], false);
  const diff = await provider.diff(goal, old.state, inputs);
  const keys = replaceKeys(diff, goal.replaceOnChanges, old.state, inputs);
  if (keys.length > 0 || old.state.pendingReplacement === true) {
    return replacement(input, old, keys, diff.deleteBeforeReplace);
  }
  const unfinished = (old.state.initErrors?.length ?? 0) > 0;
  return { op: diff.changes || unfinished ? "update" : "same", inputs, old };
}

async function replacement(
  input: PlanInput,
  old: Entry,
  keys: readonly string[],
  deleteBefore: boolean,
): Promise<ResourcePlan> {
  const { provider, goal } = input;
  refuseProtected(goal, old);
  if (goal.importId !== "") {
    const why = keys.length > 0 ? ` (because of ${keys.join(", ")})` : "";
    throw new Error(
      `it is an imported resource, and the run would replace it${why}; remove the option import, or revert the change`,
    );
  }
  const inputs = await provider.check(goal, {}, goal.props);
  const first = goal.deleteBeforeReplace ?? deleteBefore;
  const deleteFirst = first ? await dependentReplacements(input, old) : undefined;
  return { op: "replace", inputs, old, keys, deleteFirst };
}

/**
 * Returns the dependents that must be deleted before `root`, in the order of their creation. These dependents read
 * properties of a deleted resource, and a change to these properties would replace the dependent.
 */
async function dependentReplacements(input: PlanInput, root: Entry): Promise<Entry[]> {
  const live = input.snapshot.entries().filter((entry) => !entry.state.delete);
  const byState = new Map(live.map((entry) => [entry.state, entry]));
  const replaced = new Set([root.state.urn]);
  const found: Entry[] = [];
  const ordered = topologicalOrder(live.map((entry) => entry.state));
  const reached = withDependents(ordered, (urn) => urn === root.state.urn);
  for (const state of ordered.filter(({ urn }) => reached.has(urn) && urn !== root.state.urn)) {
    // Programs register a resource after its dependencies. So a resource that this run has already processed no longer
    // depends on the replaced resource.
    if (!state.custom || state.external || input.taken.kept(state.urn)) continue;
    if (!(await mustBeReplaced(input.provider, state, replaced))) continue;
    replaced.add(state.urn);
    const entry = byState.get(state);
    if (entry) found.push(entry);
  }
  return found;
}

async function mustBeReplaced(
  provider: ProviderProcess,
  state: ResourceState,
  replaced: ReadonlySet<string>,
): Promise<boolean> {
  if (state.deletedWith && replaced.has(state.deletedWith)) return true;
  const inputs: Props = { ...state.inputs };
  let depends = false;
  for (const [key, urns] of Object.entries(state.propertyDependencies ?? {})) {
    if (inputs[key] === undefined || !urns.some((urn) => replaced.has(urn))) continue;
    inputs[key] = UNKNOWN;
    depends = true;
  }
  if (!depends) return false;
  const diff = await provider.diff(state, state, inputs);
  return replaceKeys(diff, state.replaceOnChanges ?? [], { inputs: state.inputs }, inputs).length > 0;
}

/** Rejects the replacement of a resource that is protected in the state and in the program. */
function refuseProtected(goal: Goal, old: Entry | undefined): void {
  if (!goal.protect || !old?.state.protect) return;
  throw new ProtectedError("it is protected and would be replaced", old.state.urn);
}

/** Returns true if the program imports an object that is not in the state yet. */
function wantsImport(goal: Goal, old: Entry | undefined): boolean {
  if (!goal.custom || goal.importId === "") return false;
  return !old || (old.state.importID ?? old.state.id) !== goal.importId;
}

/** @throws Error if the object does not exist, or differs from the program */
async function planImport(
  provider: ProviderProcess,
  goal: Goal,
  old: Entry | undefined,
): Promise<ImportPlan> {
  const id = goal.importId;
  // For an import, the provider receives only the id of the object. A dynamic provider also receives its serialized
  // code.
  const code: Props = { [PROVIDER_KEY]: goal.props[PROVIDER_KEY] ?? null };
  const found = await provider.read(goal, { id, inputs: goal.props, outputs: code });
  if (!found) throw new Error(`it cannot be imported: no object has the id "${id}"`);
  if (!found.inputs) {
    throw new Error(
      "it cannot be imported: its provider has no method read, or read returns no inputs; " +
        "implement read so that it returns { id, props, inputs }",
    );
  }
  const read = markSecrets(found.inputs, goal.props);
  const outputs = markSecrets(found.outputs, goal.props);
  const inputs = await provider.check(goal, read, ignoreChanges(goal.props, read, goal.ignoreChanges));
  await requireAgreement(provider, goal, { id: found.id, inputs: read, outputs }, inputs);
  return { op: "import", inputs, old, found: { id: found.id, outputs } };
}

/** Checks that an import needs no changes. @throws Error if the object would have to be updated or replaced */
async function requireAgreement(
  provider: ProviderProcess,
  goal: Goal,
  existing: KnownObject,
  inputs: Props,
): Promise<void> {
  const diff = await provider.diff(goal, existing, inputs);
  if (!diff.changes) return;
  const fields = changedFields(existing, inputs).filter(({ path }) => {
    const [key = ""] = path.split(".");
    // Skips inputs that are unknown in a preview. The run compares these inputs later.
    return key !== PROVIDER_KEY && !containsUnknown(inputs[key]);
  });
  if (fields.length === 0 && containsUnknown(inputs)) return;
  const lines = fields.map(
    ({ path, old, new: now }) =>
      `${path} is ${JSON.stringify(old)}, but ${JSON.stringify(now)} in the program`,
  );
  throw new Error(
    `it cannot be imported, because the object "${goal.importId}" differs from the program: ` +
      `${lines.length > 0 ? lines.join("; ") : "the provider does not report the difference"}. ` +
      "Set these inputs to the object's values (or list them in ignoreChanges), import, then change them.",
  );
}

export function ignoreChanges(inputs: Props, oldInputs: Props, ignored: readonly string[]): Props {
  if (ignored.length === 0) return inputs;
  const result: Props = { ...inputs };
  const all = ignored.includes("*");
  const keys = all ? new Set([...Object.keys(inputs), ...Object.keys(oldInputs)]) : new Set(ignored);
  keys.delete(PROVIDER_KEY);
  for (const key of keys) {
    const old = oldInputs[key];
    if (old === undefined) delete result[key];
    else result[key] = old;
  }
  return result;
}

/** Returns the properties that force a replacement, according to the provider and the option `replaceOnChanges`. */
function replaceKeys(
  diff: ProviderDiff,
  paths: readonly string[],
  old: Known & Pick<ResourceState, "initErrors">,
  inputs: Props,
): string[] {
  const keys = new Set(diff.changes ? diff.replaces : []);
  if (diff.changes && paths.length > 0) {
    for (const key of changedKeys(plainProps(old.inputs ?? {}), plainProps(inputs))) {
      if (key !== PROVIDER_KEY && (paths.includes("*") || paths.includes(key))) keys.add(key);
    }
  }
  if (paths.includes("*") && (old.initErrors?.length ?? 0) > 0) keys.add(INIT_ERROR_KEY);
  return [...keys];
}
