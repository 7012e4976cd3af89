import { makeUrn, urnName, urnQualifiedType, urnScope, urnType } from "../urn.ts";
import type { Props } from "../value.ts";

/** One resource in the state, secrets in clear (wrapped, see value.ts). Fields of newer versions are kept. */
export type ResourceState = {
  urn: string;
  custom: boolean;
  type: string;
  id?: string;
  inputs?: Props;
  outputs?: Props;
  parent?: string;
  protect?: boolean;
  external?: boolean;
  delete?: boolean;
  taint?: boolean;
  pendingReplacement?: boolean;
  dependencies?: string[];
  propertyDependencies?: { [key: string]: string[] };
  provider?: string;
  initErrors?: string[];
  additionalSecretOutputs?: string[];
  aliases?: string[];
  /** The id the program imported it by. */
  importID?: string;
  retainOnDelete?: boolean;
  deletedWith?: string;
  replaceWith?: string[];
  ignoreChanges?: string[];
  replaceOnChanges?: string[];
  customTimeouts?: { create?: string; update?: string; delete?: string; read?: string };
  viewOf?: string;
  created?: string;
  modified?: string;
  [other: string]: unknown;
};

/** An operation that was in flight when a run stopped; `type` as Pulumi names it. */
export type PendingOperation = {
  resource: ResourceState;
  type: "creating" | "updating" | "deleting" | "reading" | "importing";
};

/** True for the entry of a provider. */
export function isProviderState(state: ResourceState): boolean {
  return state.type.startsWith("pulumi:providers:");
}

/** Every urn this resource needs to exist before it: parent, dependencies, provider, `deletedWith`. */
export function references(state: ResourceState): string[] {
  const urns = new Set<string>(state.dependencies ?? []);
  for (const list of Object.values(state.propertyDependencies ?? {})) for (const urn of list) urns.add(urn);
  if (state.parent) urns.add(state.parent);
  if (state.deletedWith) urns.add(state.deletedWith);
  for (const urn of state.replaceWith ?? []) urns.add(urn);
  if (state.viewOf) urns.add(state.viewOf);
  if (state.provider) urns.add(state.provider.slice(0, state.provider.lastIndexOf("::")));
  urns.delete(state.urn);
  return [...urns];
}

/**
 * Rewrites urns and references by the given map (old urn to new urn). A urn holds the types of its parents: the
 * children of a renamed resource that were not registered yet follow it. Parents must come before their children.
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
  return states.map((state) => renameReferences(state, all));
}

function renameReferences(state: ResourceState, renamed: ReadonlyMap<string, string>): ResourceState {
  if (![state.urn, ...references(state)].some((urn) => renamed.has(urn))) return state;
  const to = (urn: string): string => renamed.get(urn) ?? urn;
  const out: ResourceState = { ...state, urn: to(state.urn) };
  if (state.parent) out.parent = to(state.parent);
  if (state.deletedWith) out.deletedWith = to(state.deletedWith);
  if (state.dependencies) out.dependencies = state.dependencies.map(to);
  if (state.replaceWith) out.replaceWith = state.replaceWith.map(to);
  if (state.propertyDependencies) {
    out.propertyDependencies = Object.fromEntries(
      Object.entries(state.propertyDependencies).map(([key, urns]) => [key, urns.map(to)]),
    );
  }
  if (state.provider) {
    const at = state.provider.lastIndexOf("::");
    out.provider = to(state.provider.slice(0, at)) + state.provider.slice(at);
  }
  return out;
}
