import { isOwnSource } from "../../terraform/source.ts";
import {
  type Blocks,
  configuredResources,
  type PlanJson,
  type ResourceChange,
  type StateResource,
  titleOf,
  withoutKeys,
} from "./planJson.ts";
import { kinds } from "./planReader.ts";
import { isOwnBlock } from "./providerBlocks.ts";

/**
 * Returns the changes that this version evaluates. Their mode, type and action are known, and their resource does not
 * belong to another provider.
 * @param omitted the {@link omittedResources}
 */
export const evaluatedChanges = (json: PlanJson, omitted: readonly ResourceChange[]): ResourceChange[] =>
  [...json.resource_changes, ...omitted].filter((change) => isKnown(change) && !isOfOther(change));

/**
 * Returns sentences about the parts of a plan that this version cannot evaluate:
 * - an errored plan, and changes that are deferred to a later plan
 * - resources of this provider with an unknown type, mode or action
 * - resources in the state that are neither in the changes of a partial plan nor in the configuration: an apply without
 *   `-target` would delete them
 * - resources that have a type of this provider, but belong to another provider
 * @param omitted the {@link omittedResources}
 */
export function notEvaluated(json: PlanJson, omitted: readonly ResourceChange[]): string[] {
  const deferred = json.deferred_changes.filter(({ resource_change: { type } }) => type.startsWith(PREFIX));
  const blocks = configuredResources(json);
  const ofState = new Set(omitted);
  const reasonsOf = (change: ResourceChange): string[] => {
    if (!isOurs(json, blocks, change)) return [];
    if (isKnown(change) && isOfOther(change)) return [`it belongs to the provider ${change.provider_name}`];
    const isLeft = ofState.has(change) && !blocks.has(withoutKeys(change.address));
    return [...unknownPart(change), ...(isLeft && json.resource_changes.length > 0 ? [LEFT] : [])];
  };
  return [
    ...(json.errored ? ["the plan is incomplete, since its run failed"] : []),
    ...deferred.map(
      ({ reason, resource_change: { address } }) =>
        `${address}: not evaluated, since its change is deferred to a later plan${reason === undefined ? "" : ` (${reason})`}`,
    ),
    ...[...json.resource_changes, ...omitted].flatMap((change) =>
      reasonsOf(change).map((reason) => `${titleOf(change)}: not evaluated, since ${reason}`),
    ),
  ];
}

const LEFT =
  "neither the changes of the plan nor the configuration contain it; create the plan without -target and -exclude";

/** The lists of actions that Terraform and OpenTofu generate for a managed resource. */
const ACTIONS: ReadonlySet<string> = new Set([
  "no-op",
  "create",
  "update",
  "delete",
  "delete,create",
  "create,delete",
  "forget",
  "create,forget",
  "forget,create",
]);

/** The lists of actions that Terraform and OpenTofu generate for a data source. */
const DATA_ACTIONS: ReadonlySet<string> = new Set(["read", "no-op"]);

const hasKnownAction = ({ mode, change }: ResourceChange): boolean =>
  (mode === "data" ? DATA_ACTIONS : ACTIONS).has(change.actions.join());

/** Returns true if this version can evaluate a change: the mode, the type and the action are known. */
const isKnown = (change: ResourceChange): boolean =>
  change.mode === "managed" && kinds.has(change.type) && hasKnownAction(change);

const isOfOther = ({ provider_name: source }: ResourceChange): boolean =>
  source !== undefined && !isOwnSource(source);

/** The prefix of this provider's resource types. */
const PREFIX = "gatehouse_";

/**
 * Returns true for a resource of this provider. The provider, the type, or the provider block in the configuration
 * identifies the resource.
 */
export function isOurs(
  json: PlanJson,
  blocks: Blocks,
  { address, type, provider_name: source }: ResourceChange | StateResource,
): boolean {
  if (type.startsWith(PREFIX) || (source !== undefined && isOwnSource(source))) return true;
  const key = blocks.get(withoutKeys(address))?.provider_config_key;
  return key !== undefined && isOwnBlock(json, key);
}

/**
 * Returns a list with the reason why this version cannot evaluate a change. Returns an empty list for a known change or
 * data source.
 */
function unknownPart(change: ResourceChange): string[] {
  const { mode, type } = change;
  const remedy = "update gatehouse, or create the plan again";
  if (mode !== "managed" && mode !== "data")
    return [`this version does not know the mode ${JSON.stringify(mode)}; ${remedy}`];
  if (mode === "managed" && !kinds.has(type))
    return [`this version does not know the resource type ${type}; ${remedy}`];
  if (hasKnownAction(change)) return [];
  const { actions } = change.change;
  if (actions.length === 0) return ["its change has no action; create the plan again"];
  return [`this version does not know the action ${actions.join(" and ")}; ${remedy}`];
}
