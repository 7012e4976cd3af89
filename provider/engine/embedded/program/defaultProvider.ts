import { randomUUID } from "node:crypto";
import type { ResourceState } from "../../state/resourceState.ts";
import { makeUrn } from "../../urn.ts";
import { equal, type Props } from "../../value.ts";

const TYPE = "pulumi:providers:pulumi-nodejs";

/** The urn of the provider that all dynamic resources of a stack belong to. */
export function defaultProviderUrn(stack: string, project: string): string {
  return makeUrn(stack, project, "", TYPE, "default");
}

/**
 * The default provider's entry in the state, which holds the configuration; it keeps its id when that changes.
 * Returns `old` itself where nothing does.
 */
export function defaultProviderState(
  urn: string,
  config: Props,
  old: ResourceState | undefined,
): ResourceState {
  if (old && equal(old.inputs ?? {}, config)) return old;
  const now = new Date().toISOString();
  return {
    urn,
    custom: true,
    id: old?.id ?? randomUUID(),
    type: TYPE,
    inputs: config,
    outputs: config,
    created: old?.created ?? now,
    modified: now,
  };
}
