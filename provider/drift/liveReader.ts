import { ConfigurationError, isUnreachable, RequestError } from "@gatehouse-access/sdk";
import { ResourceLifecycle, type Runtime } from "../lifecycle/lifecycle.ts";
import { RunRecord } from "../lifecycle/runRecord.ts";
import type { ResourceDefinition } from "../model/definition.ts";
import type { ReadLive } from "../plan/terraform/livePlan.ts";
import { ResourceError } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";

/**
 * Returns a function that reads live objects in the same way as the refresh of an engine. If the read of one object
 * fails, the function returns the reason. If the service cannot be reached, the function throws.
 */
export function liveReader(connection: Connection): ReadLive {
  const runtime: Runtime = {
    run: new RunRecord(),
    defaultTenant: () => undefined,
    declaration: () => undefined,
    isReplacementRequested: () => false,
    connection: () => connection,
    tell: () => undefined,
  };
  const lifecycles = new Map<ResourceDefinition, ResourceLifecycle>();
  const lifecycleOf = (definition: ResourceDefinition) => {
    const known = lifecycles.get(definition) ?? new ResourceLifecycle(definition, runtime);
    lifecycles.set(definition, known);
    return known;
  };
  return async (definition, id, state) => {
    try {
      const found = await lifecycleOf(definition).read(undefined, id, state);
      return { state: found?.state };
    } catch (error) {
      if (!isOfObject(error)) throw error;
      return { problem: error.message };
    }
  };
}

/** Returns true for an error that concerns only one object or namespace, such as a missing permission. */
const isOfObject = (error: unknown): error is Error =>
  error instanceof ResourceError ||
  error instanceof ConfigurationError ||
  (error instanceof RequestError && !isUnreachable(error));
