import type { Props } from "./value.ts";

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

/** Rewrites every reference by the given map (old urn to new urn). */
export function renameReferences(state: ResourceState, renamed: ReadonlyMap<string, string>): ResourceState {
  if (renamed.size === 0 || !references(state).some((urn) => renamed.has(urn))) return state;
  const to = (urn: string): string => renamed.get(urn) ?? urn;
  const out: ResourceState = { ...state };
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
