import { ConfigurationError } from "@gatehouse-access/sdk";
import type { Plan, ResourceValues, Step } from "../engine/index.ts";
import { isHidden } from "../model/plannedStep.ts";
import { declaresNamespace } from "../namespace/liveObjects.ts";
import type { Connection } from "../service/connection.ts";
import { isUnreadable } from "../service/listings.ts";
import { namespaceOf } from "../service/lookups.ts";

/**
 * Adds the ids of adopted namespaces to a plan, since a preview does not contain these ids. A resource whose tenant
 * refers to an adopted namespace also gets the id. So a review evaluates it as a resource in an existing namespace.
 * @param plan a preview with values
 * @throws RequestError if the namespaces cannot be read
 */
export async function withAdoptedNamespaces(connection: Connection, plan: Plan): Promise<Plan> {
  const ids = new Map<string, string>();
  for (const step of plan.steps) {
    const id = await adoptedBy(connection, step);
    if (id !== undefined) ids.set(step.urn, id);
  }
  if (ids.size === 0) return plan;
  return { ...plan, steps: plan.steps.map((step) => withId(step, ids)) };
}

async function adoptedBy(connection: Connection, step: Step): Promise<string | undefined> {
  const { name, adopt } = step.after?.inputs ?? {};
  if (step.op !== "create" || !adopt || !declaresNamespace(step)) return undefined;
  if (typeof name !== "string" || isHidden(name)) return undefined;
  try {
    return (await namespaceOf(connection, { name })).tenantId;
  } catch (error) {
    // If the namespace does not exist, the run creates it.
    if (error instanceof ConfigurationError || isUnreadable(error)) return undefined;
    throw error;
  }
}

function withId(step: Step, ids: ReadonlyMap<string, string>): Step {
  const own = ids.get(step.urn);
  const { after } = step;
  if (own !== undefined && after) return { ...step, id: own, after: inNamespace(after, own) };
  const [urn = "", ...others] = after?.references?.tenant ?? [];
  const tenant = others.length === 0 ? ids.get(urn) : undefined;
  if (!after || tenant === undefined) return step;
  const inputs = { ...after.inputs, tenant };
  return { ...step, after: inNamespace({ ...after, inputs }, tenant) };
}

const inNamespace = (values: ResourceValues, tenant: string): ResourceValues => ({
  ...values,
  outputs: { ...values.outputs, tenant },
});
