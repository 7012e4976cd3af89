import type { Claim, Identity, ResourceDefinition } from "../model/definition.ts";
import { hasUnknown } from "../model/values.ts";
import { ResourceError, said } from "../resourceError.ts";

interface Holder {
  readonly resource: string;
  /**
   * The type of the resource if the claim is shared. Several resources of this type may have the same shared claim.
   * Undefined if the claim is exclusive.
   */
  readonly shared: string | undefined;
}

/**
 * The claims of a program's resources. A claim is a key that identifies an object on the service. An exclusive claim
 * reserves the object for one resource. If two resources managed one object, they would revert each other's changes in
 * every run. So the second resource gets an error with the names of both resources.
 */
export class Claims {
  readonly #holders = new Map<string, Holder[]>();
  readonly #declared = new Map<string, readonly string[]>();
  readonly #held = new Map<string, readonly string[]>();

  /**
   * Claims the object that the inputs declare. Drops the claims that the resource has because of earlier inputs.
   * @throws DuplicateDeclarationError if a different resource has claimed the object
   */
  declare(definition: ResourceDefinition, resource: string, inputs: Readonly<Record<string, unknown>>): void {
    this.#releaseAll(this.#declared, resource);
    const { identity } = definition;
    if (!identity || identity.fields.some((field) => hasUnknown(inputs[field]))) return;
    const claims = identity.ofInputs(inputs);
    for (const claim of claims) this.#take(definition, resource, claim);
    this.#declared.set(
      resource,
      claims.map((claim) => claim.key),
    );
  }

  /**
   * Claims an object by its id.
   * @throws DuplicateDeclarationError if a different resource has claimed the object
   */
  hold(definition: ResourceDefinition, resource: string, id: string): void {
    const claims = claimsOfId(definition, id);
    for (const claim of claims) this.#take(definition, resource, claim);
    const before = this.#held.get(resource) ?? [];
    this.#held.set(resource, [...before, ...claims.map((claim) => claim.key)]);
  }

  /**
   * Claims objects that a resource's state identifies. If the resource's id does not identify the resource's own
   * object, that object is one of them. The others are objects that this run must not delete, such as replaced API keys
   * that still work. Several resources may claim the same object in this way.
   */
  keep(definition: ResourceDefinition, resource: string, state: Readonly<Record<string, unknown>>): void {
    const keys = definition.rotation
      ? [...definition.rotation.objectKeys(state), ...definition.rotation.keeps(state)]
      : [];
    for (const key of keys) {
      this.#holders.set(key, [...(this.#holders.get(key) ?? []), { resource, shared: undefined }]);
    }
    this.#held.set(resource, [...(this.#held.get(resource) ?? []), ...keys]);
  }

  /**
   * Drops the claims of a resource that {@link hold} and {@link keep} recorded. Call this method before you record
   * these claims again, for example before the resource's object is replaced.
   */
  releaseObject(resource: string): void {
    this.#releaseAll(this.#held, resource);
  }

  /**
   * Returns true if a resource of the program other than `except` has claimed the object with this id, or an object
   * that contains it.
   */
  isHeld(definition: ResourceDefinition, id: string, except?: string): boolean {
    return claimsOfId(definition, id).some((claim) => this.isHeldAlone(claim.key, except));
  }

  /** Returns true if a resource of the program other than `except` has an exclusive claim with this key. */
  isHeldAlone(key: string, except?: string): boolean {
    const holders = this.#holders.get(key) ?? [];
    return holders.some((holder) => holder.shared === undefined && holder.resource !== except);
  }

  #take(definition: ResourceDefinition, resource: string, claim: Claim): void {
    const shared = claim.shared ? definition.name : undefined;
    const holders = this.#holders.get(claim.key) ?? [];
    const other = holders.find(
      (holder) => holder.resource !== resource && (shared === undefined || holder.shared !== shared),
    );
    if (other) {
      throw new DuplicateDeclarationError(definition.name, {
        code: "duplicate_declaration",
        field: [claim.property],
        detail: said`${nameOf(resource)} and ${nameOf(other.resource)} manage the same object`,
        remedy: said`remove one of the two resources`,
      });
    }
    if (!holders.some((holder) => holder.resource === resource)) {
      this.#holders.set(claim.key, [...holders, { resource, shared }]);
    }
  }

  #releaseAll(claims: Map<string, readonly string[]>, resource: string): void {
    for (const key of claims.get(resource) ?? []) this.#release(key, resource);
    claims.delete(resource);
  }

  #release(key: string, resource: string): void {
    const left = (this.#holders.get(key) ?? []).filter((holder) => holder.resource !== resource);
    if (left.length > 0) this.#holders.set(key, left);
    else this.#holders.delete(key);
  }
}

/**
 * Thrown when two resources of one program manage the same object. If no other resource of the program manages an
 * existing object, a plain {@link ResourceError} with a remedy is thrown instead.
 */
export class DuplicateDeclarationError extends ResourceError {
  override readonly name = "DuplicateDeclarationError";
}

/** Returns the claims of a resource on the object with this id. */
export function claimsOfId(definition: ResourceDefinition, id: string): readonly Claim[] {
  const identity: Identity | undefined = definition.identity;
  return (
    identity?.ofId?.(id) ?? [{ key: `${definition.name} ${id}`, property: identity?.fields[0] ?? "tenant" }]
  );
}

/** Converts `urn:…::project::…PublicKey::ana` to `PublicKey "ana"`. */
function nameOf(resource: string): string {
  const [name = "", type = ""] = resource.split("::").reverse();
  return `${type.split(/[:$]/).at(-1)} "${name}"`;
}
