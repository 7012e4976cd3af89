import type { DeviceFilter } from "@gatehouse-access/sdk/policy";
import { type Plan, type Step, typeName } from "../../engine/index.ts";
import { definitionOf } from "../../estate/liveObjects.ts";
import type { Estate } from "../../estate/namespaceState.ts";
import { apiKeyIdentity, deviceKey, devicesByKey } from "../../service/listings.ts";
import { tenantIn } from "../steps.ts";
import type { ReviewedContent, ReviewedFields, ReviewedObject, ReviewedStep } from "./planFile.ts";

/** Where and how a plan was made. */
export interface PlanScope {
  /** Address of the service. */
  readonly service: string;
  /** The namespace of resources that name none; undefined where each names one. */
  readonly home: string | undefined;
  /** Whether the real objects were read first. */
  readonly refresh: boolean;
  /** The namespaces that the plan is about, as they are. */
  readonly estates: readonly Estate[];
}

/**
 * What a plan declares, and what it finds in the state and on the service. Left out is what changes by itself: counters,
 * dates, whether a device is online.
 * @param plan a preview with values
 */
export function capturePlan(plan: Plan, { estates, ...scope }: PlanScope): ReviewedContent {
  const { project, stack, steps } = plan;
  const devices = new Map(estates.map((estate) => [estate.tenant, devicesByKey(estate.devices)]));
  const deviceOf = (step: Step) => {
    const selector = step.after?.inputs.device;
    const found = devices.get(tenantOf(step) ?? scope.home ?? "");
    return typeof selector === "string" ? found?.get(deviceKey(selector.toLowerCase()))?.uid : undefined;
  };
  return {
    ...{ project, stack, ...scope, at: new Date().toISOString() },
    steps: keyed(steps, (step) => stepOf(step, deviceOf(step))),
    namespaces: Object.fromEntries(estates.map((estate) => [estate.tenant, namespaceOf(estate)])),
  };
}

/**
 * Steps by urn. An old object that a replacement has not deleted yet has the same urn as the new one: its step has its id
 * beside the urn.
 */
function keyed(steps: readonly Step[], reviewed: (step: Step) => ReviewedStep): Record<string, ReviewedStep> {
  const found = new Map<string, ReviewedStep>();
  const deletionsLast = (step: Step) => Number(step.op === "delete");
  for (const step of steps.toSorted((left, right) => deletionsLast(left) - deletionsLast(right))) {
    found.set(found.has(step.urn) ? `${step.urn} ${step.id}` : step.urn, reviewed(step));
  }
  return Object.fromEntries(found);
}

const tenantOf = ({ before, after }: Step): string | undefined =>
  [before, after].map((values) => values && tenantIn(values)).find((tenant) => typeof tenant === "string");

function stepOf(step: Step, device: string | undefined): ReviewedStep {
  const { op, type, name, id, before, after } = step;
  const own = definitionOf(step)?.inputs;
  return {
    op,
    title: `${typeName(type)} "${name}"`,
    declared: after ? picked(after.inputs, Object.keys(own ?? after.inputs)) : null,
    about: {
      ...(id !== undefined && { id }),
      ...(device !== undefined && { device }),
      ...(before?.retained && { retainOnDelete: true }),
    },
    // A read may answer outputs alone.
    found: before ? picked({ ...before.inputs, ...before.outputs }, Object.keys(own ?? before.inputs)) : null,
  };
}

const namespaceOf = (estate: Estate) => ({
  name: estate.name,
  unread: [...(estate.members ? [] : ["members"]), ...(estate.apiKeys ? [] : ["API keys"])],
  objects: objectsOf(estate),
  devices: devicesOf(estate),
});

function picked(values: ReviewedFields, names: readonly string[]): ReviewedFields {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = values[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Everything of a namespace that decides who can reach what, or who may change that, but for devices. */
function objectsOf({ policy, members = [], apiKeys = [] }: Estate): Record<string, ReviewedObject> {
  return Object.fromEntries([
    ...policy.keys.map(({ fingerprint, filter, ...key }) =>
      entry("PublicKey", fingerprint, key.name, { ...key, filter: filterOf(filter) }),
    ),
    ...policy.rules.map(({ id, filter, ...rule }) =>
      entry("FirewallRule", id, id, { ...rule, filter: filterOf(filter) }),
    ),
    ...members.map(({ id, email, role }) => entry("Member", id, email, { email, role })),
    ...apiKeys.map(({ name, role, expiresIn, ...key }) =>
      entry("ApiKey", apiKeyIdentity(key), name, { name, role, expiresIn }),
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
