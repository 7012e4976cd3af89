import { ConfigurationError } from "@gatehouse-access/sdk";
import { tenantId } from "@gatehouse-access/sdk/contract";
import {
  EngineError,
  holds,
  type Plan,
  type ResourceValues,
  type Shown,
  type Step,
} from "../engine/index.ts";
import { isNamespace, type ResourceDefinition } from "../model/definition.ts";
import { firstTitles, hasOwnCredential, isHidden, type PlannedStep } from "../model/plannedStep.ts";
import { declaresNamespace, definitionOf } from "../namespace/liveObjects.ts";
import { type Connection, isSameService } from "../service/connection.ts";

/** Returns the top-level field of a path: `filter` for `filter.tags[0]`. */
export const topOf = (path: string): string => path.split(".", 1)[0] ?? "";

/** Returns the namespace of a resource, from its outputs or inputs. */
export const tenantIn = ({ inputs, outputs }: ResourceValues): Shown | undefined =>
  outputs.tenant ?? inputs.tenant;

/**
 * Returns the steps of a plan in one namespace. `inNewNamespaces` contains the steps in namespaces that the plan
 * creates, and is the same for every `tenant`. `notEvaluated` contains sentences about the steps whose namespace is
 * unknown.
 * @param plan a preview with values
 * @param home the namespace of resources without a tenant; an empty string if there is no such namespace
 * @throws EngineError (`plan_file`) if the plan does not contain the values of a step
 */
export function stepsOf(plan: Plan, tenant: string, home: string) {
  const steps: PlannedStep[] = [];
  const inNewNamespaces: PlannedStep[] = [];
  const notEvaluated: string[] = [];
  const namespaces = plan.steps.filter(declaresNamespace);
  const isAdoption = ({ op, id }: Step) => op === "create" && id !== undefined;
  // If the plan also adopts a namespace, an unknown namespace may be the adopted namespace.
  const createsNamespace =
    namespaces.some(({ op, id }) => op === "replace" || (op === "create" && id === undefined)) &&
    !namespaces.some(isAdoption);
  for (const step of plan.steps) {
    const definition = definitionOf(step);
    if (!definition) continue;
    requireValues(step);
    const title = titleOf(definition, step);
    const unnamed = definition.inputs.tenant ? home : undefined;
    const isHere = (values: ResourceValues) => {
      const named = tenantIn(values) ?? unnamed;
      // If the namespace is a secret or unknown value, the namespace is taken from the id of the existing object.
      return (isHidden(named) ? step.id?.split("/", 1)[0] : named) === tenant;
    };
    const before = step.before && isHere(step.before) ? step.before : undefined;
    // If the step has an id, it adopts an existing namespace.
    if (isNamespace(definition) && step.op === "create" && step.id === undefined) {
      inNewNamespaces.push({ step, definition, title, before: undefined, after: step.after });
      continue;
    }
    if (step.after && isNamespaceHidden(step)) {
      if (before) {
        notEvaluated.push(
          `${title}: its namespace is unknown before the apply; access is evaluated with its object unchanged`,
        );
      } else if (createsNamespace && !isSecretNamespace(step)) {
        inNewNamespaces.push({ step, definition, title, before, after: step.after });
      } else {
        notEvaluated.push(
          `${title}: its namespace is secret or unknown before the apply; access is evaluated without this resource`,
        );
      }
      continue;
    }
    const after = step.after && (staysIn(step) ? before : isHere(step.after)) ? step.after : undefined;
    if (before || after) steps.push({ step, definition, title, before, after });
  }
  return { steps, inNewNamespaces, notEvaluated };
}

/**
 * Checks that a step contains the values that its operation needs. Without these values, a review would omit the step.
 * @throws EngineError (`plan_file`) if values are missing
 */
function requireValues({ urn, op, before, after }: Step): void {
  const needs = {
    before: op === "delete" || op === "update" || op === "replace",
    after: op === "create" || op === "update" || op === "replace",
  };
  const isComplete = (before ?? after) && (before || !needs.before) && (after || !needs.after);
  if (isComplete) return;
  const missing = before ? "after" : "before";
  const when = !before && !after ? "before and after" : missing;
  throw new EngineError(
    "plan_file",
    `${urn}: the plan has no values ${when} the step. Run the preview with values.`,
  );
}

/**
 * Returns true if a plan changes a namespace: a step other than `same` has an object in the namespace before or after
 * the plan.
 * @param home the namespace of resources without a tenant; undefined if there is no such namespace
 */
export const changesNamespace = (plan: Plan, tenant: string, home = ""): boolean =>
  stepsOf(plan, tenant, home).steps.some(({ step }) => step.op !== "same");

/** Returns the names of the namespaces that a plan creates. A name that is not known before the apply is undefined. */
export const createdNamespaces = (plan: Plan): (string | undefined)[] =>
  stepsOf(plan, "", "")
    .inNewNamespaces.filter(({ definition }) => isNamespace(definition))
    .map(({ after }) => after?.inputs.name)
    .map((name) => (typeof name === "string" && !isHidden(name) ? name : undefined));

/**
 * Returns sentences about the resources that may be in an existing namespace, because their namespace is secret or
 * unknown before the apply.
 */
export const unplacedNotes = (plan: Plan): string[] => stepsOf(plan, "", "").notEvaluated;

/** The namespaces that plans cover. */
export interface PlanNamespaces {
  /** The namespace of resources without a tenant; undefined if all resources have a tenant. */
  readonly home: string | undefined;
  readonly tenants: readonly string[];
  /** The namespace that policy tests and `access` evaluate: {@link home}, or else the only namespace. */
  readonly main: string | undefined;
}

/**
 * Returns the namespaces that plans cover. Requests only {@link PlanNamespaces.home} from the service.
 * @param plans previews with values, see {@link onService}
 * @throws ConfigurationError if the namespace of a resource without a tenant cannot be determined, or if the plans have
 *   no Gatehouse resources and no namespace
 */
export async function namespacesOf(connection: Connection, plans: readonly Plan[]): Promise<PlanNamespaces> {
  const { tenant: home, unsettled } = await connection.homeIfAny();
  const named = plans.flatMap(({ steps }) => steps.filter(definitionOf).flatMap(tenantsIn));
  const tenants = [...new Set([...(home === undefined ? [] : [home]), ...named])];
  if (unsettled) {
    const steps = plans.flatMap((plan) => plan.steps);
    const unnamed = steps.flatMap(titleIfUnnamed);
    if (unnamed.length > 0) throw new ConfigurationError(`${firstTitles(unnamed)}: ${unsettled.message}`);
    if (!steps.some(definitionOf)) throw unsettled;
  }
  return { home, tenants, main: home ?? (tenants.length === 1 ? tenants[0] : undefined) };
}

/**
 * Returns the namespaces of a step. If the namespace is a secret value, it is taken from the id of the existing object.
 */
const tenantsIn = ({ before, after, id }: Step): string[] =>
  [
    ...[before, after].flatMap((values) => [values?.outputs.tenant, values?.inputs.tenant]),
    id?.split("/", 1)[0],
  ].flatMap((value) => tenantId.safeParse(value).data ?? []);

/** Returns a list with the title of the resource if the resource has no tenant. Otherwise returns an empty list. */
export function titleIfUnnamed(step: Step): string[] {
  const definition = definitionOf(step);
  if (!definition?.inputs.tenant) return [];
  const { before, after } = step;
  const isNamed = [before, staysIn(step) ? undefined : after].every(
    (values) => !values || tenantIn(values) !== undefined,
  );
  return isNamed ? [] : [titleOf(definition, step)];
}

/**
 * Returns a plan that contains only the resources on the service at `url`. The provider instances of one program may
 * use several services. For a resource that moves between services, only the part of the step on the service at `url`
 * remains. A resource without a tenant gets the namespace of its provider instance. `notEvaluated` contains sentences
 * about omitted changes. `unknown` contains sentences about omitted resources without changes.
 * @param plan a preview with values
 * @param url address of the service
 */
export function onService(plan: Plan, url: string) {
  const changed = new Map<string, string[]>();
  const same = new Map<string, string[]>();
  const steps = plan.steps.flatMap((step) => {
    const definition = definitionOf(step);
    if (!definition) return [step];
    const services = [step.before, step.after].flatMap((values) => otherService(values, url) ?? []);
    const left = step.op === "same" ? same : changed;
    for (const service of new Set(services)) {
      left.set(service, [...(left.get(service) ?? []), titleOf(definition, step)]);
    }
    return (services.length === 0 ? [step] : halfOn(step, url)).map((one) => withNamespace(one, definition));
  });
  return {
    plan: { ...plan, steps },
    notEvaluated: [...changed].map(leftSentence),
    unknown: [...same].map(leftSentence),
  };
}

function leftSentence([service, titles]: readonly [string, readonly string[]]): string {
  const where = isHidden(service)
    ? "a service whose address is secret or unknown before the apply"
    : `another service (${service})`;
  return `${firstTitles(titles)}: not evaluated, since ${titles.length === 1 ? "it is" : "they are"} on ${where}`;
}

/** Returns the address of a resource's service if it differs from `url`. */
function otherService(values: ResourceValues | undefined, url: string): string | undefined {
  const own = values?.provider?.url;
  return typeof own !== "string" || isSameService(own, url) ? undefined : own;
}

/**
 * For a resource that moves between services, returns the part of the step on the service at `url`: the deletion of the
 * old object, or the creation of the new object.
 */
function halfOn({ before, after, id, ...step }: Step, url: string): Step[] {
  const isHere = (values: ResourceValues | undefined) =>
    values !== undefined && otherService(values, url) === undefined;
  if (before && isHere(before)) return [{ ...step, ...(id !== undefined && { id }), op: "delete", before }];
  return after && isHere(after) ? [{ ...step, op: "create", after }] : [];
}

/**
 * Returns a step in which values without a namespace get the namespace of their provider instance. If the instance has
 * its own credential and no namespace, the namespace is unknown.
 */
function withNamespace({ before, after, ...step }: Step, { inputs }: ResourceDefinition): Step {
  const named = (values: ResourceValues): ResourceValues => {
    const ofInstance =
      values.provider?.tenant ?? (hasOwnCredential({ after: values }) ? "[secret]" : undefined);
    const tenant = tenantIn(values) ?? (inputs.tenant && ofInstance);
    return tenant === undefined ? values : { ...values, outputs: { ...values.outputs, tenant } };
  };
  return { ...step, ...(before && { before: named(before) }), ...(after && { after: named(after) }) };
}

const titleOf = ({ name }: ResourceDefinition, step: Step) => `${name} "${step.name}"`;

/**
 * Returns true for steps that keep the namespace of the object. Only a replacement moves an object to a different
 * namespace.
 */
const staysIn = ({ op }: Step) => op === "update" || op === "same";

const tenantsAfter = ({ after }: Step) => [after?.inputs.tenant, after?.outputs.tenant];

/**
 * Returns true if the namespace is a secret value. A namespace with a secret id already exists, while the id of a new
 * namespace is unknown.
 */
const isSecretNamespace = (step: Step) => tenantsAfter(step).some((tenant) => holds(tenant, "[secret]"));

/**
 * Returns true if the namespace after the step is a secret or unknown value. For a step that keeps the namespace,
 * returns true only if the step is an update with an unknown namespace, because this update may become a replacement.
 */
const isNamespaceHidden = (step: Step) =>
  tenantsAfter(step).some((tenant) =>
    staysIn(step) ? step.op === "update" && holds(tenant, "[unknown]") : isHidden(tenant),
  );
