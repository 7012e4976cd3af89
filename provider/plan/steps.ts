import { ConfigurationError } from "@gatehouse-access/sdk";
import { tenantId } from "@gatehouse-access/sdk/contract";
import { holds, type Plan, type ResourceValues, type Shown, type Step } from "../engine/index.ts";
import { definitionOf } from "../estate/liveObjects.ts";
import type { ResourceDefinition } from "../resources/definition.ts";
import { type Connection, isSameService } from "../service/connection.ts";
import { byText, firstOf } from "../words.ts";

/** A step of a plan in one namespace. Of a move to another namespace it has one half. */
export interface PlannedStep {
  readonly step: Step;
  readonly definition: ResourceDefinition;
  /** `PublicKey "ana"`, for sentences. */
  readonly title: string;
  /** The object that the resource has in the namespace today. */
  readonly before: ResourceValues | undefined;
  /** The object that the resource will have in the namespace. */
  readonly after: ResourceValues | undefined;
}

/** True if a value is secret, or not known before the plan is applied. */
export const isHidden = (value: Shown | undefined): boolean => holds(value, "[unknown]", "[secret]");

/** The field of a resource that a path is in: `filter` of `filter.tags[0]`. */
export const topOf = (path: string): string => path.split(".", 1)[0] ?? "";

export const tenantIn = ({ inputs, outputs }: ResourceValues): Shown | undefined =>
  outputs.tenant ?? inputs.tenant;

/** True if the provider instance of a resource has its own credential, whose permissions are unknown. */
export const hasOwnCredential = ({ before, after }: Pick<Step, "before" | "after">): boolean =>
  Object.values((after ?? before)?.provider ?? {}).some((value) => holds(value, "[secret]"));

/** True if the resource loses its object, or another object replaces it. */
export const losesObject = ({ op }: Step): boolean => op === "delete" || op === "replace";

/**
 * The steps of a plan that concern a namespace, and in `begun` the steps about namespaces that the plan creates, which do
 * not depend on the namespace. `unseen` lists the steps whose namespace is unknown, as sentences.
 * @param plan a preview with values
 * @param home the namespace of resources that name none; an empty text if there is none
 * @throws Error if the plan has no values
 */
export function stepsOf(plan: Plan, tenant: string, home: string) {
  const steps: PlannedStep[] = [];
  const begun: PlannedStep[] = [];
  const unseen: string[] = [];
  const makesNamespace = plan.steps.some(
    (step) => definitionOf(step)?.name === "Namespace" && (step.op === "create" || step.op === "replace"),
  );
  for (const step of plan.steps) {
    const definition = definitionOf(step);
    if (!definition) continue;
    if (!step.before && !step.after) {
      throw new Error(`${step.urn}: the plan does not tell what it is; preview with values`);
    }
    const title = titleOf(definition, step);
    const unnamed = definition.inputs.tenant ? home : undefined;
    const isHere = (values: ResourceValues) => {
      const named = tenantIn(values) ?? unnamed;
      // The id of an existing object has its namespace.
      return (isHidden(named) ? step.id?.split("/", 1)[0] : named) === tenant;
    };
    const before = step.before && isHere(step.before) ? step.before : undefined;
    if (definition.name === "Namespace" && step.op === "create") {
      begun.push({ step, definition, title, before: undefined, after: step.after });
      continue;
    }
    if (step.after && isNamespaceHidden(step)) {
      if (before) {
        unseen.push(`${title}: its namespace is not known before the change is made; it is taken as it is`);
      } else if (makesNamespace && !isSecretNamespace(step)) {
        begun.push({ step, definition, title, before, after: step.after });
      } else {
        unseen.push(
          `${title}: its namespace is secret or not known before the change is made; it is left out here`,
        );
      }
      continue;
    }
    const after = step.after && (staysIn(step) ? before : isHere(step.after)) ? step.after : undefined;
    if (before || after) steps.push({ step, definition, title, before, after });
  }
  return { steps, begun, unseen };
}

const NAMED_MAX = 5;

export interface PlanNamespaces {
  /** That of resources that name none; undefined if each resource names one. */
  readonly home: string | undefined;
  readonly tenants: readonly string[];
  /** The namespace of policy tests and `access`: the home, or the only one. */
  readonly main: string | undefined;
}

/**
 * The namespaces of plans. Only the home is read from the service.
 * @param plans previews with values, see {@link onService}
 * @throws ConfigurationError if there is no home, and a resource names no namespace, or the plans have none
 */
export async function namespacesOf(connection: Connection, plans: readonly Plan[]): Promise<PlanNamespaces> {
  const { tenant: home, unsettled } = await connection.homeIfAny();
  const named = plans.flatMap(({ steps }) => steps.filter(definitionOf).flatMap(tenantsIn));
  const tenants = [...new Set([...(home === undefined ? [] : [home]), ...named])];
  if (unsettled) {
    const steps = plans.flatMap((plan) => plan.steps);
    const unnamed = steps.flatMap(namingNone);
    if (unnamed.length > 0) throw new ConfigurationError(`${listed(unnamed)}: ${unsettled.message}`);
    if (!steps.some(definitionOf)) throw unsettled;
  }
  return { home, tenants, main: home ?? (tenants.length === 1 ? tenants[0] : undefined) };
}

const tenantsIn = ({ before, after }: Step): string[] =>
  [before, after]
    .flatMap((values) => [values?.outputs.tenant, values?.inputs.tenant])
    .flatMap((value) => tenantId.safeParse(value).data ?? []);

/** The title of a resource that names no namespace, so that it is in the home; of other resources nothing. */
export function namingNone(step: Step): string[] {
  const definition = definitionOf(step);
  if (!definition?.inputs.tenant) return [];
  const { before, after } = step;
  const isNamed = [before, staysIn(step) ? undefined : after].every(
    (values) => !values || tenantIn(values) !== undefined,
  );
  return isNamed ? [] : [titleOf(definition, step)];
}

export const listed = (titles: readonly string[]): string =>
  firstOf([...new Set(titles)].sort(byText), NAMED_MAX);

/**
 * A plan without resources on other services: the provider instances of a program may be for several. Of a resource that
 * moves between services, the half on this one is left. Resources that name no namespace get that of their provider
 * instance. `unseen` lists the omitted changes, and `unknown` the omitted unchanged resources, as sentences.
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
    return (services.length === 0 ? [step] : halfOn(step, url)).map((one) => inItsNamespace(one, definition));
  });
  return {
    plan: { ...plan, steps },
    unseen: [...changed].map(leftSentence),
    unknown: [...same].map(leftSentence),
  };
}

function leftSentence([service, titles]: readonly [string, readonly string[]]): string {
  const where = isHidden(service)
    ? "a service whose address is secret or not known before the change is made"
    : `another service (${service})`;
  return `${firstOf(titles, NAMED_MAX)}: ${titles.length === 1 ? "it is" : "they are"} on ${where}, which is not asked here`;
}

/** The address of the service of a resource if it is another one. */
function otherService(values: ResourceValues | undefined, url: string): string | undefined {
  const own = values?.provider?.url;
  return typeof own !== "string" || isSameService(own, url) ? undefined : own;
}

function halfOn({ before, after, id, ...step }: Step, url: string): Step[] {
  const isHere = (values: ResourceValues | undefined) =>
    values !== undefined && otherService(values, url) === undefined;
  if (before && isHere(before)) return [{ ...step, ...(id !== undefined && { id }), op: "delete", before }];
  return after && isHere(after) ? [{ ...step, op: "create", after }] : [];
}

/**
 * The same step with the namespace of its provider instance if its values name none. The namespace of an instance with its
 * own credential is unknown.
 */
function inItsNamespace({ before, after, ...step }: Step, { inputs }: ResourceDefinition): Step {
  const named = (values: ResourceValues): ResourceValues => {
    const ofInstance =
      values.provider?.tenant ?? (hasOwnCredential({ after: values }) ? "[secret]" : undefined);
    const tenant = tenantIn(values) ?? (inputs.tenant && ofInstance);
    return tenant === undefined ? values : { ...values, outputs: { ...values.outputs, tenant } };
  };
  return { ...step, ...(before && { before: named(before) }), ...(after && { after: named(after) }) };
}

const titleOf = ({ name }: ResourceDefinition, step: Step) => `${name} "${step.name}"`;

/** No update moves an object to another namespace. */
const staysIn = ({ op }: Step) => op === "update" || op === "same";

const tenantsAfter = ({ after }: Step) => [after?.inputs.tenant, after?.outputs.tenant];

/** A secret namespace exists already; one that the plan creates is not known yet. */
const isSecretNamespace = (step: Step) => tenantsAfter(step).some((tenant) => holds(tenant, "[secret]"));

/** An update whose namespace is not known yet may turn out to be a replacement. */
const isNamespaceHidden = (step: Step) =>
  tenantsAfter(step).some((tenant) =>
    staysIn(step) ? step.op === "update" && holds(tenant, "[unknown]") : isHidden(tenant),
  );
