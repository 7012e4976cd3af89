import type { Plan } from "../engine/index.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { readEach, readNamespace } from "../namespace/readNamespace.ts";
import { withAdoptedNamespaces } from "../plan/adoptedNamespaces.ts";
import { namespacesOf, onService, type PlanNamespaces } from "../plan/steps.ts";
import type { Connection } from "../service/connection.ts";

/** The live namespaces of plans. */
export interface LiveNamespaces extends Pick<PlanNamespaces, "home" | "main"> {
  /** The live namespaces. If the stack has its own namespace, it comes first. */
  readonly namespaces: readonly NamespaceState[];
  /** Sentences about changes on other services, and about namespaces that could not be read. */
  readonly notEvaluated: string[];
  /** Sentences about unchanged resources on other services. */
  readonly unknown: string[];
  /** The plans without the resources on other services. */
  readonly plans: readonly Plan[];
}

/**
 * Reads the stack's own namespace, if the stack has one, and all other namespaces of the plans.
 * @throws RequestError if the stack's own namespace cannot be read; ConfigurationError in the same cases as {@link
 *   namespacesOf}
 */
export async function liveNamespacesOf(
  connection: Connection,
  plans: readonly Plan[],
): Promise<LiveNamespaces> {
  const onThisService = plans.map((plan) => onService(plan, connection.client.url));
  const local = await Promise.all(onThisService.map(({ plan }) => withAdoptedNamespaces(connection, plan)));
  const { home, main, tenants } = await namespacesOf(connection, local);
  const { results, unreadable } = await readEach(tenants, home, (tenant) =>
    readNamespace(connection, tenant),
  );
  return {
    home,
    main,
    namespaces: results,
    notEvaluated: [...new Set(onThisService.flatMap((one) => one.notEvaluated)), ...unreadable.values()],
    unknown: [...new Set(onThisService.flatMap((one) => one.unknown))],
    plans: local,
  };
}
