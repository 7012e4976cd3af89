import type { Claim, Identity, ResourceDefinition } from "./definition.ts";
import { hasUnknown } from "./values.ts";

interface Holder {
  readonly resource: string;
  readonly shared: string | undefined;
}

/**
 * Which resource of a run manages what. Two resources on one object would undo each other's changes for ever,
 * so the second one is an error that names both.
 */
export class Claims {
  readonly #holders = new Map<string, Holder[]>();
  readonly #declared = new Map<string, readonly string[]>();

  /** Claims what the inputs mean, in place of what the resource declared before. */
  declare(definition: ResourceDefinition, resource: string, inputs: Readonly<Record<string, unknown>>): void {
    for (const key of this.#declared.get(resource) ?? []) this.#release(key, resource);
    this.#declared.delete(resource);
    const { identity } = definition;
    if (!identity || identity.fields.some((field) => hasUnknown(inputs[field]))) return;
    const claims = identity.ofInputs(inputs);
    for (const claim of claims) this.#take(definition, resource, claim);
    this.#declared.set(
      resource,
      claims.map((claim) => claim.key),
    );
  }

  /** Claims an object by its id. */
  hold(definition: ResourceDefinition, resource: string, id: string): void {
    for (const claim of claimsOfId(definition, id)) this.#take(definition, resource, claim);
  }

  /** The resource that holds this id alone. */
  holderOf(definition: ResourceDefinition, id: string): string | undefined {
    const [claim] = claimsOfId(definition, id);
    return claim && this.#holders.get(claim.key)?.[0]?.resource;
  }

  #take(definition: ResourceDefinition, resource: string, claim: Claim): void {
    const shared = claim.shared ? definition.name : undefined;
    const holders = this.#holders.get(claim.key) ?? [];
    const other = holders.find(
      (holder) => holder.resource !== resource && (shared === undefined || holder.shared !== shared),
    );
    if (other) {
      throw new TwinError(
        claim.property,
        `${nameOf(resource)} and ${nameOf(other.resource)} manage the same object; remove one of the two`,
      );
    }
    if (!holders.some((holder) => holder.resource === resource)) {
      this.#holders.set(claim.key, [...holders, { resource, shared }]);
    }
  }

  #release(key: string, resource: string): void {
    const left = (this.#holders.get(key) ?? []).filter((holder) => holder.resource !== resource);
    if (left.length > 0) this.#holders.set(key, left);
    else this.#holders.delete(key);
  }
}

/** Two resources of one program manage one object. */
export class TwinError extends Error {
  override readonly name = "TwinError";
  readonly property: string;

  constructor(property: string, reason: string) {
    super(reason);
    this.property = property;
  }
}

function claimsOfId(definition: ResourceDefinition, id: string): readonly Claim[] {
  const identity: Identity | undefined = definition.identity;
  return (
    identity?.ofId?.(id) ?? [{ key: `${definition.name} ${id}`, property: identity?.fields[0] ?? "tenant" }]
  );
}

/** `urn:…::project::…PublicKey::ana` as `PublicKey "ana"`. */
function nameOf(resource: string): string {
  const [name = "", type = ""] = resource.split("::").reverse();
  return `${type.split(/[:$]/).at(-1)} "${name}"`;
}
