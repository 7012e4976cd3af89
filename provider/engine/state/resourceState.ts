import { makeUrn, typeName, urnName, urnOfProvider, urnQualifiedType, urnScope, urnType } from "../../urn.ts";
import type { Diagnostic } from "../model.ts";
import type { Props } from "../value.ts";

/**
 * A resource in the state. Secrets are in plaintext, but are marked as secrets (see value.ts). The type allows fields
 * of newer Pulumi versions.
 */
export interface ResourceState {
  readonly urn: string;
  readonly custom: boolean;
  readonly type: string;
  readonly id?: string;
  readonly inputs?: Props;
  readonly outputs?: Props;
  readonly parent?: string;
  readonly protect?: boolean;
  readonly external?: boolean;
  readonly delete?: boolean;
  readonly taint?: boolean;
  readonly pendingReplacement?: boolean;
  readonly dependencies?: readonly string[];
  readonly propertyDependencies?: Readonly<Record<string, readonly string[]>>;
  readonly provider?: string;
  readonly initErrors?: readonly string[];
  readonly additionalSecretOutputs?: readonly string[];
  readonly aliases?: readonly string[];
  /** The id in the option `import`, if the program imported the object. */
  readonly importID?: string;
  readonly retainOnDelete?: boolean;
  readonly deletedWith?: string;
  readonly replaceWith?: readonly string[];
  readonly ignoreChanges?: readonly string[];
  readonly replaceOnChanges?: readonly string[];
  readonly customTimeouts?: CustomTimeouts;
  readonly viewOf?: string;
  readonly created?: string;
  readonly modified?: string;
  readonly [other: string]: unknown;
}

/** Timeouts for operations on a resource, as strings in the format of the program. */
export interface CustomTimeouts {
  readonly create?: string;
  readonly update?: string;
  readonly delete?: string;
  readonly read?: string;
}

/** An operation that was in flight when a run stopped. `type` is a value that Pulumi defines, such as `creating`. */
export interface PendingOperation {
  readonly resource: ResourceState;
  readonly type: "creating" | "updating" | "deleting" | "reading" | "importing";
}

export function isProviderState(state: Pick<ResourceState, "type">): boolean {
  return state.type.startsWith("pulumi:providers:");
}

/**
 * Returns the URNs of all resources that must exist before this resource, such as its parent, dependencies, provider
 * and `deletedWith`.
 */
export function references(state: ResourceState): string[] {
  const urns = new Set<string>(state.dependencies ?? []);
  for (const list of Object.values(state.propertyDependencies ?? {})) for (const urn of list) urns.add(urn);
  if (state.parent) urns.add(state.parent);
  if (state.deletedWith) urns.add(state.deletedWith);
  for (const urn of state.replaceWith ?? []) urns.add(urn);
  if (state.viewOf) urns.add(state.viewOf);
  if (state.provider) urns.add(urnOfProvider(state.provider));
  urns.delete(state.urn);
  return [...urns];
}

/**
 * Changes the URNs of resources and all references to them. The URN of a child contains the types of its parents. So
 * the children of a renamed resource get new URNs too, even before the program registers them.
 * @param states the resources; each parent must precede its children
 * @param renamed the new URNs, by the old URNs
 */
export function renameAll(
  states: readonly ResourceState[],
  renamed: ReadonlyMap<string, string>,
): ResourceState[] {
  if (renamed.size === 0) return [...states];
  const all = new Map(renamed);
  for (const { urn, parent } of states) {
    const now = parent === undefined ? undefined : all.get(parent);
    if (now === undefined || all.has(urn)) continue;
    const { stack, project } = urnScope(urn);
    const followed = makeUrn(stack, project, now, urnType(urn), urnName(urn));
    if (urnQualifiedType(followed) !== urnQualifiedType(urn)) all.set(urn, followed);
  }
  const to = (urn: string): string => all.get(urn) ?? urn;
  return states.map((state) =>
    [state.urn, ...references(state)].some((urn) => all.has(urn))
      ? { ...withReferences(state, to), urn: to(state.urn) }
      : state,
  );
}

/**
 * Replaces all URNs in the references of a resource. If the new URN is undefined, removes the reference, except for the
 * reference to the provider.
 */
export function withReferences(state: ResourceState, to: (urn: string) => string | undefined): ResourceState {
  const each = (urns: readonly string[]): string[] => urns.flatMap((urn) => to(urn) ?? []);
  const { parent, deletedWith, dependencies, replaceWith, propertyDependencies, provider } = state;
  const ofProvider = provider && to(urnOfProvider(provider));
  return {
    ...state,
    ...(parent && { parent: to(parent) }),
    ...(deletedWith && { deletedWith: to(deletedWith) }),
    ...(dependencies && { dependencies: each(dependencies) }),
    ...(replaceWith && { replaceWith: each(replaceWith) }),
    ...(propertyDependencies && {
      propertyDependencies: Object.fromEntries(
        Object.entries(propertyDependencies).map(([key, urns]) => [key, each(urns)]),
      ),
    }),
    ...(ofProvider && { provider: ofProvider + provider.slice(provider.lastIndexOf("::")) }),
  };
}

/**
 * Sorts resources so that each resource comes after the resources that it refers to. The result includes deposed
 * objects, which are marked for deletion. Independent resources and resources in a cycle keep their order.
 */
export function topologicalOrder(states: readonly ResourceState[]): ResourceState[] {
  const byUrn = Map.groupBy(states, ({ urn }) => urn);
  const ordered: ResourceState[] = [];
  const seen = new Set<ResourceState>();
  const visit = (start: ResourceState): void => {
    const work: { state: ResourceState; next: ResourceState[]; at: number }[] = [];
    const enter = (state: ResourceState): void => {
      if (seen.has(state)) return;
      seen.add(state);
      work.push({ state, next: references(state).flatMap((urn) => byUrn.get(urn) ?? []), at: 0 });
    };
    enter(start);
    while (work.length > 0) {
      const frame = work[work.length - 1] as (typeof work)[number];
      const dependency = frame.next[frame.at++];
      if (dependency) enter(dependency);
      else {
        ordered.push(frame.state);
        work.pop();
      }
    }
  };
  for (const state of states) visit(state);
  return ordered;
}

/**
 * Returns the URNs of the resources for which `start` returns true, and the URNs of all their dependents.
 * @param ordered the resources, dependencies first
 */
export function withDependents(
  ordered: readonly ResourceState[],
  start: (urn: string) => boolean,
): Set<string> {
  const reached = new Set<string>();
  for (const state of ordered) {
    if (start(state.urn) || references(state).some((urn) => reached.has(urn))) reached.add(state.urn);
  }
  return reached;
}

/** The remedy for a pending create operation that no run can resolve. */
export const REMEDY =
  "check whether the object exists, then run `gatehouse refresh --clear-pending-creates` to remove the pending operation";

/** Returns the warning about an operation that was in flight when a run stopped. The warning contains the remedy. */
export function pendingWarning(type: PendingOperation["type"], urn: string): Diagnostic {
  const advice =
    type === "creating"
      ? `It is unknown whether the object was created. If the next creation does not resolve this, ${REMEDY}.`
      : "It is unknown whether the operation was finished. Run `gatehouse refresh` to check.";
  const message = `An earlier run was stopped while ${type} the ${typeName(urnType(urn))} ${urnName(urn)}. ${advice}`;
  return { severity: "warning", message, urn };
}
