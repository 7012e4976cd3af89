import { isDeepStrictEqual } from "node:util";
import { EngineError } from "../../engine/index.ts";
import { hasUnknown } from "../../model/values.ts";
import type { Attribute } from "../../terraform/attributes.ts";
import { fromTerraform, hasType, type Row } from "../../terraform/types.ts";
import { firstOf } from "../../words.ts";
import { isOurs } from "./evaluatedResources.ts";
import {
  type Blocks,
  type ConfiguredResource,
  configuredResources,
  objectKey,
  type PlanJson,
  type ResourceChange,
  type StateResource,
  stateResources,
  titleOf,
  withoutKeys,
} from "./planJson.ts";
import { hasMark, kinds, markedRow } from "./planReader.ts";
import { blockOf, isOwnBlock } from "./providerBlocks.ts";

const NAMED_MAX = 5;

/**
 * Checks that the parts of a plan agree. The changes, the planned values, the prior state and the configuration must
 * describe the same objects of this provider with the same values, and each value must have the type of its attribute.
 * Otherwise an edited part of the plan could hide a change from a review. Parts that the plan omits are not compared.
 * @param changes the changes of this provider's resources: the changes of the plan, and {@link omittedResources}
 * @param name name of the plan in errors
 * @throws EngineError (`plan_file`) with the resources and attributes that contradict each other
 */
export function requireConsistent(json: PlanJson, changes: readonly ResourceChange[], name: string): void {
  const planned = new Set(json.resource_changes);
  const listed = changes.filter((change) => planned.has(change));
  const blocks = configuredResources(json);
  const drifted = json.resource_drift.filter((change) => kinds.has(change.type));
  const problems = [
    ...repeated(json),
    ...ofWholePlan(json),
    ...json.resource_changes.filter((change) => isOurs(json, blocks, change)).flatMap(modeProblems),
    ...listed.flatMap((change) => titled(change, problemsOf(json, change, blocks))),
    ...[...drifted, ...changes.filter((change) => !planned.has(change))].flatMap((change) =>
      titled(change, typeProblemsOf(change)),
    ),
    ...unmatched(json, listed, blocks),
  ];
  if (problems.length === 0) return;
  const message = `Cannot read ${name}: it is not a consistent plan: ${firstOf(problems, NAMED_MAX)}. Create the plan again with this version of the provider, and do not edit its JSON`;
  throw new EngineError("plan_file", message);
}

const titled = (change: ResourceChange, problems: readonly string[]): string[] =>
  problems.map((problem) => `${titleOf(change)}: ${problem}`);

/** Reports objects that one part of the plan lists twice. */
function repeated(json: PlanJson): string[] {
  const lists = {
    resource_changes: json.resource_changes,
    resource_drift: json.resource_drift,
    planned_values: plannedResources(json),
    prior_state: priorResources(json),
  };
  return Object.entries(lists).flatMap(([part, list]) =>
    [...Map.groupBy<string, ResourceChange | StateResource>(list, objectKey).values()]
      .filter((same) => same.length > 1)
      .flatMap(([one]) => (one ? `${titleOf(one)}: ${part} contains the object twice` : [])),
  );
}

/**
 * Reports a plan whose `applyable` contradicts its changes: false although the plan contains changes, or true although
 * it contains none.
 */
function ofWholePlan({ applyable, resource_changes: changes, ...json }: PlanJson): string[] {
  const isChanged = changes.some(
    ({ mode, change: { actions } }) => mode === "managed" && actions.join() !== "no-op",
  );
  if (applyable === false && isChanged && !json.errored)
    return ["resource_changes contains changes, but applyable is false"];
  const isExplained =
    changes.length > 0 ||
    json.resource_drift.length > 0 ||
    json.deferred_changes.length > 0 ||
    json.action_invocations.length > 0 ||
    Object.values(json.output_changes).some(({ actions }) => actions.join() !== "no-op");
  const isEmptied = applyable === true && !isExplained && json.prior_state?.values !== undefined;
  return isEmptied ? ["applyable is true, but the plan contains no change"] : [];
}

const plannedResources = (json: PlanJson): StateResource[] => stateResources(json.planned_values.root_module);

const priorResources = (json: PlanJson): StateResource[] =>
  stateResources(json.prior_state?.values?.root_module);

function problemsOf(json: PlanJson, resource: ResourceChange, blocks: Blocks): string[] {
  const shape = shapeProblem(resource.change);
  if (shape !== undefined) return [shape];
  const block = blocks.get(withoutKeys(resource.address));
  return [
    ...addressProblems(resource),
    ...configurationProblems(json, resource, block),
    ...valueProblems(resource, block),
  ];
}

/** Reports a resource whose mode and address contradict each other. */
function modeProblems(change: ResourceChange): string[] {
  const isData = /^(?:module\.[^.]+\.)*data\./.test(withoutKeys(change.address));
  const isKnown = change.mode === "managed" || change.mode === "data";
  return isKnown && isData !== (change.mode === "data")
    ? [`${titleOf(change)}: its mode is ${change.mode}, but its address has another mode`]
    : [];
}

/** Returns the contradiction between the action of a change and its values. Returns undefined if there is none. */
function shapeProblem({ actions, before, after, after_unknown: unknown }: ResourceChange["change"]) {
  const action = actions.join(" and ");
  const hasBefore = action !== "create";
  const hasAfter = action !== "delete" && action !== "forget";
  if (hasBefore !== (before !== null))
    return `the action ${action} ${hasBefore ? "needs values" : "must not have values"} in change.before`;
  if (hasAfter !== (after !== null))
    return `the action ${action} ${hasAfter ? "needs values" : "must not have values"} in change.after`;
  if (hasAfter ? typeof unknown !== "object" : unknown === true)
    return "change.after_unknown must have the form of change.after";
  if (action === "no-op" && (!isSame(before, after) || hasMark(unknown)))
    return "the action is no-op, but change.before and change.after differ";
  const isReplaced = typeof unknown === "object" && unknown.id === true;
  if (action === "update" && !isReplaced && before?.id !== after?.id)
    return "the action is update, but id differs between change.before and change.after";
  return undefined;
}

/**
 * Returns true if two values are equal. A missing member is equal to null, since older versions of a provider omit
 * members.
 */
const isSame = (left: unknown, right: unknown): boolean =>
  isDeepStrictEqual(withoutNull(left), withoutNull(right));

function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNull(member)]));
}

/**
 * Returns the type in an address: `gatehouse_tag` in `module.a["x"].gatehouse_tag.b[0]`. Names can contain letters of
 * any script.
 */
const typeIn = (address: string): string | undefined =>
  /^(?:module\.[^.[\]]+\.)*([\w-]+)\.[^.[\]]+$/.exec(withoutKeys(address))?.[1];

function addressProblems({ address, type, change }: ResourceChange): string[] {
  const inAddress = typeIn(address);
  const problems = inAddress === type ? [] : [`its type is ${type}, but its address has a different type`];
  const ids = [
    ["before", change.before],
    ["after", change.after],
  ] as const;
  return [
    ...problems,
    ...ids.flatMap(([side, row]) => {
      const { id, tenant } = row ?? {};
      const isInOther =
        typeof id === "string" &&
        typeof tenant === "string" &&
        tenant !== "" &&
        type !== "gatehouse_namespace" &&
        !id.startsWith(`${tenant}/`);
      return isInOther ? [`change.${side}.id is in another namespace than change.${side}.tenant`] : [];
    }),
  ];
}

/** Reports a resource that exists after the plan, but whose block is missing or belongs to another resource. */
function configurationProblems(
  json: PlanJson,
  { address, type, change }: ResourceChange,
  block: ConfiguredResource | undefined,
): string[] {
  if (!change.after) return [];
  // For a resource with a generated configuration, Terraform writes the block after the plan.
  if (!block) return change.generated_config === undefined ? ["the configuration does not contain it"] : [];
  if (block.type !== type)
    return [`its type is ${type}, but the configuration of ${address} has a different type`];
  const { provider_config_key: key } = block;
  if (Object.keys(json.configuration.provider_config).length === 0) return [];
  if (key === undefined) return ["the configuration does not contain its provider block"];
  if (!blockOf(json, key)) return [`the configuration does not contain its provider block ${key}`];
  return isOwnBlock(json, key) ? [] : [`its provider block ${key} belongs to another provider`];
}

/** Reports values that do not have the type of their attribute, and planned inputs that the provider would reject. */
function valueProblems(resource: ResourceChange, block: ConfiguredResource | undefined): string[] {
  const { type, change } = resource;
  const ofTypes = typeProblemsOf(resource);
  if (!change.after || ofTypes.length > 0) return ofTypes;
  const marks = markProblems(change);
  if (change.actions.join() === "no-op") return marks;
  const row = markedRow(change);
  const attributes = kinds.get(type)?.attributes ?? [];
  return [...marks, ...attributes.flatMap((attribute) => inputProblems(attribute, change, row, block))];
}

function typeProblemsOf({ type, change }: ResourceChange): string[] {
  const attributes = kinds.get(type)?.attributes ?? [];
  const { before, after } = change;
  return [
    ...(before ? typeProblems("change.before", attributes, before) : []),
    ...(after ? typeProblems("change.after", attributes, markedRow(change)) : []),
  ];
}

const typeProblems = (side: string, attributes: readonly Attribute[], row: Row): string[] =>
  attributes
    .filter(({ type, name }) => !hasType(type, row[name]))
    .map(({ name, type }) => `${side}.${name} must have the type ${type.kind}`);

/** Reports values that the plan contains although they are marked as unknown. */
function markProblems({ after, after_unknown: unknown }: ResourceChange["change"]): string[] {
  if (!after || typeof unknown !== "object") return [];
  return Object.entries(unknown)
    .filter(([name, mark]) => mark === true && after[name] !== undefined)
    .map(([name]) => `change.after.${name} has a value, but is marked as unknown`);
}

function inputProblems(
  attribute: Attribute,
  change: ResourceChange["change"],
  row: Row,
  block: ConfiguredResource | undefined,
): string[] {
  if (attribute.role !== "input") return [];
  const { name, field, type } = attribute;
  const side = `change.after.${name}`;
  const isConfigured = block !== undefined && name in block.expressions;
  const value = fromTerraform(type, row[name]);
  if (!(name in row) && (isConfigured || name === "tenant"))
    return [`${side} is missing, and is not marked as unknown`];
  if (hasUnknown(value)) {
    const isPlanned = field.required || field.default !== undefined;
    return block && !isConfigured && isPlanned
      ? [`${side} is marked as unknown, but the configuration does not set it`]
      : [];
  }
  if (value === undefined || value === "") return field.required ? [`${side} is missing`] : [];
  const { error } = field.schema.safeParse(value);
  if (!error) return [];
  const [issue] = error.issues;
  const path = [side, ...(issue?.path ?? [])].map(String).join(".");
  const mask = (change.after_sensitive ?? {}) as Row | boolean;
  const isSensitive = mask === true || (typeof mask === "object" && mask[name] === true);
  return [
    `${path} ${isSensitive ? "has an invalid value" : `is invalid for this version of gatehouse: ${issue?.message}`}`,
  ];
}

/** Reports differences between the changes and the planned values, and between the changes and the prior state. */
function unmatched(json: PlanJson, own: readonly ResourceChange[], blocks: Blocks): string[] {
  const listed = new Map(json.resource_changes.map((change) => [objectKey(change), change]));
  const prior = new Map(priorResources(json).map((one) => [objectKey(one), one]));
  const planned = new Map(plannedResources(json).map((one) => [objectKey(one), one]));
  const hasPrior = json.prior_state?.values !== undefined;
  const hasPlanned = json.planned_values.root_module !== undefined;
  return [
    ...plannedResources(json)
      .filter((one) => one.mode !== "data" && isOurs(json, blocks, one) && !listed.has(objectKey(one)))
      .map(({ address }) => `${address}: planned_values contains it, but resource_changes does not`),
    ...(hasPlanned ? own.flatMap((change) => plannedProblems(change, planned.get(objectKey(change)))) : []),
    ...(hasPrior ? own.flatMap((change) => priorProblems(change, prior.get(objectKey(change)))) : []),
    ...(json.complete === true && json.resource_changes.length > 0
      ? [...prior.values()]
          .filter((one) => one.mode !== "data" && isOurs(json, blocks, one) && !listed.has(objectKey(one)))
          .map((one) => `${titleOf(one)}: prior_state contains it, but resource_changes does not`)
      : []),
  ];
}

function plannedProblems(change: ResourceChange, planned: StateResource | undefined): string[] {
  const title = titleOf(change);
  const action = change.change.actions.join();
  // The planned values never contain a deposed object: an old object that a replacement has not deleted yet.
  if (change.deposed !== undefined) return [];
  if (action === "delete") return planned ? [`${title}: it is deleted, but planned_values contains it`] : [];
  // For a forgotten resource, the planned values contain the resource without its values.
  const { after } = change.change;
  if (!planned) return [`${title}: resource_changes contains it, but planned_values does not`];
  return [
    ...identityProblems(change, planned, "planned_values"),
    ...differing(title, after, planned.values, "change.after", "planned_values"),
  ];
}

function priorProblems(change: ResourceChange, prior: StateResource | undefined): string[] {
  const title = titleOf(change);
  const { before } = change.change;
  if (!before) return prior ? [`${title}: it is created, but prior_state contains it`] : [];
  if (!prior) return [`${title}: change.before has values, but prior_state does not contain it`];
  return [
    ...identityProblems(change, prior, "prior_state"),
    ...differing(title, before, prior.values, "change.before", "prior_state"),
  ];
}

const identityProblems = (change: ResourceChange, other: StateResource, part: string): string[] =>
  (["mode", "type", "provider_name"] as const)
    .filter((name) => change[name] !== other[name])
    .map((name) => `${titleOf(change)}: ${name} differs between resource_changes and ${part}`);

function differing(
  title: string,
  one: Row | null,
  other: Row,
  ...[here, there]: readonly [string, string]
): string[] {
  const row = one ?? {};
  return [...new Set([...Object.keys(row), ...Object.keys(other)])]
    .filter((name) => !isSame(row[name] ?? null, other[name] ?? null))
    .map((name) => `${title}: ${name} differs between ${here} and ${there}`);
}
