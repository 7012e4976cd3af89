import type { Row } from "../../terraform/types.ts";
import { type Diagnostic, errorAt } from "./diagnostics.ts";
import { idIn, type TerraformResource } from "./resource.ts";

/**
 * The objects that one plan is about. Terraform tells a provider no address of a resource, and removes and makes objects in
 * any order: of two resources with one object, each would lose what the other one does.
 */
export class PlannedObjects {
  /** Types and ids of what is in the state and stays. */
  readonly #staying = new Set<string>();
  /** What the plan removes, by type and id and by {@link TerraformResource.objectKeys}. */
  readonly #going = new Set<string>();
  /** What the plan makes, by {@link TerraformResource.objectKeys}. */
  readonly #coming = new Set<string>();
  /** How many resources have no state yet. */
  #made = 0;

  /** What a resource is called in errors about two that have one object. */
  nameOf({ typeName }: TerraformResource, prior: Row | undefined): string {
    if (prior) return `::${typeName}::${idIn(prior)}`;
    this.#made += 1;
    return `::${typeName}::new ${this.#made}`;
  }

  /** Takes note of an object that stays. @returns the error where another resource of the state has it too */
  stays(resource: TerraformResource, prior: Row): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const isTwin = this.#staying.has(object) || this.#going.has(object);
    this.#staying.add(object);
    return isTwin ? twins(object) : undefined;
  }

  /** Takes note of an object that is removed. @returns the error where another resource has it, or declares it */
  goes(resource: TerraformResource, prior: Row): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const keys = resource.objectKeys(prior);
    for (const key of [object, ...keys]) this.#going.add(key);
    if (this.#staying.has(object)) return twins(object);
    return keys.some((key) => this.#coming.has(key)) ? notMoved(object) : undefined;
  }

  /** Takes note of an object that is made. @returns the error where it is the one that the plan removes */
  comes(resource: TerraformResource, planned: Row): Diagnostic | undefined {
    const keys = resource.objectKeys(planned);
    for (const key of keys) this.#coming.add(key);
    return keys.some((key) => this.#going.has(key)) ? notMoved(`the ${resource.typeName}`) : undefined;
  }
}

const objectOf = ({ typeName }: TerraformResource, prior: Row): string => `${typeName} ${idIn(prior)}`;

const twins = (object: string): Diagnostic =>
  errorAt(
    [],
    "Two resources with one object",
    `${object} is in the state of another resource of this configuration too; remove one of the two from the state (a removed block with destroy = false, or the command state rm)`,
  );

const notMoved = (object: string): Diagnostic =>
  errorAt(
    [],
    "An object that is removed and declared",
    `${object} is removed by this plan, and another resource declares the same object: say by a moved block that it is that resource's now, or apply the removal first`,
  );
