import type { DeviceFilter } from "@gatehouse-access/sdk/policy";
import { type Plan, type Step, typeName } from "../../engine/index.ts";
import { definitionOf } from "../../estate/liveObjects.ts";
import { acceptedDevices, type Estate } from "../../estate/namespaceState.ts";
import { apiKeyIdentity, deviceKey, devicesByKey } from "../../service/listings.ts";
import { tenantIn } from "../steps.ts";
import type { ReviewedContent, ReviewedFields, ReviewedObject, ReviewedStep } from "./planFile.ts";

/** The scope of a reviewed plan: service, namespaces, and their live state. */
export interface PlanScope {
  readonly service: string;
  /** The namespace of resources without a tenant; undefined if all resources have a tenant. */
  readonly home: string | undefined;
  /** True if the plan was created after a refresh of the live objects. */
  readonly refresh: boolean;
  readonly estates: readonly Estate[];
}

/**
 * Returns the content of a plan file: the declarations of a plan, and the values of the objects in the state and on the
 * service. Fields that change without a plan are omitted: counters, dates, and the online status of devices.
 * @param plan a preview with values
 */
export function capturePlan(plan: Plan, { estates, ...scope }: PlanScope): ReviewedContent {
  const { project, stack, steps } = plan;
  const devices = new Map(estates.map((estate) => [estate.tenant, devicesByKey(estate.devices)]));
  const deviceOf = (step: Step) => {
    const selector = step.after?.inputs.device;
    const known = devices.get(tenantOf(step) ?? scope.home ?? "");
    return typeof selector === "string" ? known?.get(deviceKey(selector.toLowerCase()))?.uid : undefined;
  };
  return {
    ...{ project, stack, ...scope, at: new Date().toISOString() },
    steps: keyed(steps, (step) => stepOf(step, deviceOf(step))),
    namespaces: Object.fromEntries(estates.map((estate) => [estate.tenant, namespaceOf(estate)])),
  };
}

/**
 * Returns the steps by URN. If an earlier run did not finish a replacement, the state contains the old object with the
 * URN of the new object. The key of such an old object is its URN and id.
 */
function keyed(steps: readonly Step[], reviewed: (step: Step) => ReviewedStep): Record<string, ReviewedStep> {
  const byKey = new Map<string, ReviewedStep>();
  const deletionsLast = (step: Step) => Number(step.op === "delete");
  for (const step of steps.toSorted((left, right) => deletionsLast(left) - deletionsLast(right))) {
    byKey.set(byKey.has(step.urn) ? `${step.urn} ${step.id}` : step.urn, reviewed(step));
  }
  return Object.fromEntries(byKey);
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
    // After a read, the state of an object may contain only outputs, so inputs and outputs are combined.
    found: before ? picked({ ...before.inputs, ...before.outputs }, Object.keys(own ?? before.inputs)) : null,
  };
}

const namespaceOf = (estate: Estate) => ({
  name: estate.name,
  unread: [
    ...(estate.members ? [] : ["members"]),
    ...(estate.apiKeys ? [] : ["API keys"]),
    ...(estate.trustedWorkloads ? [] : ["trusted workloads"]),
    ...(estate.accessUnknown === undefined ? [] : ["access policies"]),
  ],
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

function objectsOf(estate: Estate): Record<string, ReviewedObject> {
  const { policy, identity, members = [], apiKeys = [], trustedWorkloads = [] } = estate;
  return Object.fromEntries([
    ...(identity ? [entry("Access mode", "", "", { accessPoliciesDecide: identity.decides })] : []),
    ...(identity?.policies ?? []).map(({ id, filter, subject, logins, sourceIps, ...one }) =>
      entry("AccessPolicy", id, one.name, {
        ...{ ...one, subject: { ...subject }, filter: filterOf(filter) },
        ...{ logins: logins.toSorted(), sourceIps: sourceIps.toSorted() },
      }),
    ),
    ...(identity?.serviceAccounts ?? []).map(({ id, name, role, keys = [] }) =>
      entry("ServiceAccount", id, name, { name, role, keys: keys.map(({ fingerprint }) => fingerprint) }),
    ),
    ...policy.keys.map(({ fingerprint, sshFingerprint, filter, ...key }) =>
      entry("PublicKey", fingerprint, key.name, { ...key, filter: filterOf(filter) }),
    ),
    ...policy.rules.map(({ id, filter, ...rule }) =>
      entry("FirewallRule", id, id, { ...rule, filter: filterOf(filter) }),
    ),
    ...members.map(({ id, email, role }) => entry("Member", id, email, { email, role })),
    ...apiKeys.map(({ name, role, expiresIn, ...key }) =>
      entry("ApiKey", apiKeyIdentity(key), name, { name, role, expiresIn }),
    ),
    ...trustedWorkloads.map(({ id, name, issuer, audience, claims, role, maxSessionMinutes, singleUse }) =>
      entry("TrustedWorkload", id, name, {
        ...{ name, issuer, audience, claims, role, maxSessionMinutes, singleUse },
      }),
    ),
  ]);
}

/** A device filter with sorted tags, since their order does not matter. */
const filterOf = ({ hostname, tags }: DeviceFilter): ReviewedFields => ({
  ...(hostname !== undefined && { hostname }),
  ...(tags !== undefined && { tags: tags.toSorted() }),
});

function devicesOf({ devices }: Estate): Record<string, ReviewedObject> {
  const shown = acceptedDevices(devices).map(({ uid, name, tags }) => [
    uid,
    { title: `device "${name}"`, fields: { name, tags: tags.toSorted() } },
  ]);
  return Object.fromEntries(shown);
}

const entry = (kind: string, id: string, name: string, fields: ReviewedFields): [string, ReviewedObject] => [
  `${kind} ${id}`,
  { title: name === "" ? kind : `${kind} "${name}"`, fields },
];
