import type { DeviceFilter } from "@gatehouse-access/sdk/policy";
import { type Plan, type Step, typeName } from "../../engine/index.ts";
import { apiKeyIdentity } from "../../resources/listings.ts";
import type { Estate } from "../estate.ts";
import { definitionOf } from "../planned/steps.ts";
import type { ReviewedContent, ReviewedFields, ReviewedObject, ReviewedStep } from "./content.ts";

/** What a plan is about, beside its steps. */
export interface PlanScope {
  /** Address of the service. */
  readonly service: string;
  /** The namespace of resources that name none. */
  readonly home: string;
  /** Whether the real objects were read first. */
  readonly refresh: boolean;
  /** The namespaces of the plan, as they are. */
  readonly estates: readonly Estate[];
}

/**
 * What a plan declares and finds, without what changes by itself: counters, dates, marks of being online.
 * @param plan a preview with values
 */
export function captured(plan: Plan, { estates, ...scope }: PlanScope): ReviewedContent {
  const { project, stack, steps } = plan;
  const living = new Set(steps.filter(({ op }) => op !== "delete").map(({ urn }) => urn));
  // What an earlier replacement left over shares the urn of what replaced it.
  const keyOf = ({ op, urn, id }: Step) => (op === "delete" && living.has(urn) ? `${urn} ${id}` : urn);
  return {
    ...{ project, stack, ...scope, at: new Date().toISOString() },
    steps: Object.fromEntries(steps.map((step) => [keyOf(step), stepOf(step)])),
    namespaces: Object.fromEntries(
      estates.map((estate) => [
        estate.tenant,
        { name: estate.name, objects: objectsOf(estate), devices: devicesOf(estate) },
      ]),
    ),
  };
}

function stepOf(step: Step): ReviewedStep {
  const { op, type, name, before, after } = step;
  const inputs = Object.keys(definitionOf(step)?.inputs ?? before?.inputs ?? {});
  return {
    op,
    title: `${typeName(type)} "${name}"`,
    declared: after ? picked(after.inputs, Object.keys(definitionOf(step)?.inputs ?? after.inputs)) : null,
    // A read may answer outputs alone.
    found: before ? picked({ ...before.inputs, ...before.outputs }, inputs) : null,
  };
}

function picked(values: ReviewedFields, names: readonly string[]): ReviewedFields {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = values[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Everything of a namespace that decides about access or about the policy, but for devices. */
function objectsOf({ policy, members = [], apiKeys = [] }: Estate): Record<string, ReviewedObject> {
  return Object.fromEntries([
    ...policy.keys.map(({ fingerprint, name, username, filter }) =>
      entry("PublicKey", fingerprint, name, { name, username, filter: filterOf(filter) }),
    ),
    ...policy.rules.map(({ id, action, active, priority, sourceIp, username, filter }) =>
      entry("FirewallRule", id, id, {
        action,
        active,
        priority,
        sourceIp,
        username,
        filter: filterOf(filter),
      }),
    ),
    ...members.map(({ id, email, role }) => entry("Member", id, email, { email, role })),
    ...apiKeys.map((key) =>
      entry("ApiKey", apiKeyIdentity(key), key.name, {
        ...{ name: key.name, role: key.role, expiresIn: key.expiresIn },
      }),
    ),
  ]);
}

/** Tags have no order. */
const filterOf = ({ hostname, tags }: DeviceFilter): ReviewedFields => ({
  ...(hostname !== undefined && { hostname }),
  ...(tags !== undefined && { tags: tags.toSorted() }),
});

function devicesOf({ devices }: Estate): Record<string, ReviewedObject> {
  return Object.fromEntries(
    devices
      .filter(({ status }) => status === "accepted")
      .map(({ uid, name, tags }) => [
        uid,
        { title: `device "${name}"`, fields: { name, tags: tags.toSorted() } },
      ]),
  );
}

const entry = (kind: string, id: string, name: string, fields: ReviewedFields): [string, ReviewedObject] => [
  `${kind} ${id}`,
  { title: `${kind} "${name}"`, fields },
];
