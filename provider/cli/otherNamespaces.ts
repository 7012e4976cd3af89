import type { StateResource } from "../engine/index.ts";
import { UNKNOWN } from "../engineMarks.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import type { TerraformPlan } from "../plan/terraform/readTerraformPlan.ts";
import { type Connection, isSameService } from "../service/connection.ts";

/**
 * Returns a phrase for each namespace, with the number of its resources: `the namespace prod (3f…), in which 3
 * resources of the stack are`. Sentences about omitted namespaces contain these phrases.
 * @param resources number of resources in each namespace, by the id of the namespace
 */
export async function namespaceTexts(
  connection: Connection,
  resources: ReadonlyMap<string, number>,
  owner: "stack" | "plan",
): Promise<string[]> {
  const { nameOfNamespace } = await import("../review/namespaceSearch.ts");
  const { namespaceText, usedBy } = await import("../policyTests/testCoverage.ts");
  const texts: string[] = [];
  for (const [tenant, count] of resources) {
    const where = namespaceText(await nameOfNamespace(connection, tenant));
    texts.push(`${where}, ${usedBy(count, owner)}`);
  }
  return texts;
}

/**
 * Returns the number of resources in each namespace, except in the namespace `tenant`. The keys are the ids of the
 * namespaces.
 */
export async function resourcesOutside(
  tenant: string,
  own: readonly OwnResource[],
): Promise<ReadonlyMap<string, number>> {
  if (own.length === 0) return new Map();
  const { namespacesUsedBy } = await import("../namespace/coverage.ts");
  const others = new Map(namespacesUsedBy(own));
  others.delete(tenant);
  return others;
}

/**
 * Returns the resources of `service` from the state of a Terraform plan. Includes resources whose service is not known.
 * @param service address of the service
 */
export async function terraformResources(
  { plan, resources }: Pick<TerraformPlan, "plan" | "resources">,
  service: string,
): Promise<OwnResource[]> {
  const { ownResources } = await import("../namespace/coverage.ts");
  const urls = new Map(plan.steps.map(({ urn, before, after }) => [urn, (before ?? after)?.provider?.url]));
  const isHere = ({ urn }: StateResource) => {
    const url = urls.get(urn);
    // If the service of a resource is not known yet, it may be this service.
    return typeof url !== "string" || url === UNKNOWN || isSameService(url, service);
  };
  return ownResources(resources.filter(isHere), service);
}
