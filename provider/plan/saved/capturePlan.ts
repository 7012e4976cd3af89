import { type Plan, type Step, typeName } from "../../engine/index.ts";
import type { LiveObject } from "../../model/object.ts";
import { idWithin } from "../../model/values.ts";
import { definitionOf } from "../../namespace/liveObjects.ts";
import type { NamespaceState } from "../../namespace/namespaceState.ts";
import { acceptedDevices, deviceState, devicesOf, uidSelected } from "../../resources/device.ts";
import { kindOf, kindsWith } from "../../resources/index.ts";
import { tenantIn } from "../steps.ts";
import type { ReviewedContent, ReviewedFields, ReviewedObject, ReviewedStep } from "./planFile.ts";

/** The scope of a reviewed plan: the service, and the live state of the namespaces. */
interface PlanScope {
  readonly service: string;
  /** The namespace of resources without a tenant; undefined if all resources have a tenant. */
  readonly home: string | undefined;
  /** True if the plan was created after a refresh of the live objects. */
  readonly refresh: boolean;
  readonly live: readonly NamespaceState[];
}

/**
 * Returns the content of a plan file: the declarations of a plan, and the values of the objects in the state and on the
 * service. Omits the fields that change without a plan: counters, dates, and the online status of devices.
 * @param plan a preview with values
 */
export function capturePlan(plan: Plan, { live, ...scope }: PlanScope): ReviewedContent {
  const { project, stack, steps } = plan;
  const namespaces = new Map(live.map((one) => [one.tenant, one]));
  const deviceOf = (step: Step) => {
    const selector = step.after?.inputs.device;
    const state = namespaces.get(tenantOf(step) ?? scope.home ?? "");
    return state && typeof selector === "string" ? uidSelected(state, selector.toLowerCase()) : undefined;
  };
  return {
    project,
    stack,
    ...scope,
    at: new Date().toISOString(),
    steps: keyed(steps, (step) => stepOf(step, deviceOf(step))),
    namespaces: Object.fromEntries(live.map((one) => [one.tenant, namespaceOf(one)])),
  };
}

/**
 * Returns the steps by URN. An unfinished replacement of an earlier run leaves the old object in the state, with the
 * same URN as the new object. The key of such an old object is its URN and id.
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
    // After a read, the state of an object may contain only outputs. So the inputs and the outputs are merged.
    found: before ? picked({ ...before.inputs, ...before.outputs }, Object.keys(own ?? before.inputs)) : null,
  };
}

const namespaceOf = (live: NamespaceState) => ({
  name: live.name,
  unread: [
    ...Array.from(live.unread.values(), ({ what }) => what),
    ...(live.accessUnknown === undefined ? [] : ["who has access"]),
  ],
  objects: objectsOf(live),
  devices: Object.fromEntries(
    acceptedDevices(devicesOf(live).map(deviceState)).map(({ uid, name, tags }) => [
      uid,
      { title: `device "${name}"`, fields: { name, tags: tags.toSorted() } },
    ]),
  ),
});

function picked(values: ReviewedFields, names: readonly string[]): ReviewedFields {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = values[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Returns the values of all objects except devices, because devices enroll without a plan. */
const objectsOf = (live: NamespaceState): Record<string, ReviewedObject> =>
  Object.fromEntries([
    ["Access mode", { title: "Access mode", fields: { accessPoliciesDecide: live.accessPoliciesDecide } }],
    ...kindsWith("reading").flatMap(({ definition, reading }) =>
      reading.isEnrolled
        ? []
        : Array.from(live.of(definition) ?? [], ([key, object]) => [
            `${definition.name} ${key}`,
            objectOf(object),
          ]),
    ),
  ]);

/**
 * Returns the values of an object that determine its effect: its inputs, the outputs that change only if the object is
 * changed, and the values that its kind adds. Omits secrets.
 */
function objectOf(object: LiveObject): ReviewedObject {
  const { inputs, outputs, name: kind } = object.definition;
  const { plan, watched } = kindOf(object);
  const lasting = Object.entries(outputs).filter(([, { volatile, mutable }]) => !volatile && !mutable);
  const fields = [...Object.entries(inputs), ...lasting].filter(([, { secret }]) => !secret);
  // If an object has no input for its name, its displayed name consists of values that can change. The title then
  // contains the id.
  const name = inputs.name || watched?.isNamed ? object.name : idWithin(object);
  const names = fields.map(([field]) => field);
  return {
    title: name === "" ? kind : `${kind} "${name}"`,
    fields: {
      ...picked(object.state as ReviewedFields, names),
      ...(plan.captured?.(object) as ReviewedFields),
    },
  };
}
