import { ConflictError, isNotFound } from "@gatehouse-access/sdk";
import type { Declaration } from "@gatehouse-access/sdk/contract";
import type { Adopt } from "../model/defineResource.ts";
import type { Existing, Origin, ResourceDefinition } from "../model/definition.ts";
import { UnfinishedError } from "../model/unfinishedError.ts";
import { ResourceError, said } from "../resourceError.ts";
import { isSameStack, lastChangeIfReadable } from "../service/auditTrail.ts";
import type { Connection } from "../service/connection.ts";
import { isUnclear } from "../service/listings.ts";
import type { Values } from "../values.ts";
import { valueJson } from "../words.ts";
import { diff, type InputChange } from "./diff.ts";
import { objectId, tenantOf } from "./outOfBand.ts";

export interface Creation {
  readonly definition: ResourceDefinition;
  readonly connection: Connection;
  readonly inputs: Record<string, unknown>;
  readonly origin: Origin;
  /**
   * The resource that declares the object. Undefined if the front end (Pulumi or Terraform) does not provide it.
   * @default unknown
   */
  readonly declaration?: Declaration | undefined;
  /**
   * Names of inputs whose values must not appear in errors.
   * @default none
   */
  readonly secretInputs?: readonly string[] | undefined;
  /** Called with the id of an adopted object. */
  readonly adopted: (id: string) => void;
  /**
   * Returns true if the new resource inherits the object with this id: the new resource declares the object of the
   * resource that it replaces. Inheritance does not require `adopt`.
   */
  readonly inherits?: ((id: string) => boolean) | undefined;
  /** Called before an object is inherited. */
  readonly inherited?: () => void;
  /**
   * The connection that updates adopted objects.
   * @default connection
   */
  readonly adopting?: Connection;
}

/**
 * Creates or adopts the object that the inputs declare. The call can be repeated after any failure:
 * - If a response was lost, the request is repeated on services with idempotency keys. On other services, an identical
 *   existing object is adopted instead.
 * - If an earlier attempt created an object with the same idempotency key, this object is updated to match the inputs.
 *   It is not updated if a different resource has declared it, or if a different actor has changed it since.
 * - If the object existed before the first attempt, it is adopted only if `adopt` allows the adoption.
 * @throws Error with the existing object, the differences and the remedy
 * @throws UnfinishedError if the object exists, but could not be updated to match the inputs
 */
export async function createOrAdopt(creation: Creation): Promise<Existing<Values>> {
  const { definition, connection, inputs, origin } = creation;
  const replaced = await replacedObject(creation);
  if (replaced) return inherit(creation, replaced);
  const adopt = inputs.adopt as Adopt;
  const mayAdopt = adopt || definition.overwrites;
  if (mayAdopt || mayDuplicate(definition, origin)) {
    const existing = await definition.find?.(connection, inputs, origin.isOthers);
    if (existing && !mayAdopt) throw existsAlready(creation, existing.id, []);
    if (existing) return adoptExisting(creation, existing, adopt);
  }
  try {
    return await create(creation);
  } catch (error) {
    if (!isUnclear(error) && !isUnprovenRefusal(error)) throw await withConflict(creation, error);
  }
  await connection.forget();
  // The first request may have created the object. With idempotency keys, the repeated create returns this object.
  // Without idempotency keys, only a search can find this object. The search may also find an identical object of a
  // different resource.
  if (!(await connection.knowsIdempotencyKeys(inputs.tenant as string | undefined))) {
    const existing = await definition.find?.(connection, inputs, origin.isOthers);
    if (existing) return adoptExisting(creation, existing, true, true);
  }
  try {
    return await create(creation);
  } catch (error) {
    throw await withConflict(creation, error);
  }
}

/** Returns true for a 404 that may come from a proxy. The service may then have created the object. */
const isUnprovenRefusal = (error: unknown): boolean => isNotFound(error) && !error.isFromService;

/**
 * Returns true if this create request may duplicate an object. The object may exist because an interrupted run created
 * it but did not record it in the state. A duplicate is possible if two conditions are met. First, the engine does not
 * pass the resource's name, so this run cannot compute the earlier idempotency key. Second, the resource type has no
 * identity, so the service accepts identical objects.
 */
const mayDuplicate = ({ identity }: ResourceDefinition, { isNamed }: Origin): boolean =>
  !isNamed && !identity;

/**
 * Returns the error to throw for a failed create operation. After a conflict, the error contains the existing object
 * and a remedy.
 */
async function withConflict(creation: Creation, error: unknown): Promise<unknown> {
  const { definition, connection, inputs } = creation;
  if (!(error instanceof ConflictError)) return error;
  await connection.forget();
  const existing = await definition.find?.(connection, inputs);
  if (!existing) return error;
  const changes = diff(definition, existing.state, inputs);
  return existsAlready(creation, existing.id, conflicting(definition, changes));
}

/**
 * Returns the changes that an adoption may make only with `adopt: "overwrite"`. Omits secrets, because the service does
 * not return them, so their values cannot be compared.
 * @param isInterrupted true if the create operation may have ended before its second request, which sets some of the
 *   inputs
 */
const conflicting = (
  { inputs }: ResourceDefinition,
  changes: readonly InputChange[],
  isInterrupted = false,
): readonly InputChange[] =>
  changes.filter(({ field, before }) => {
    const input = inputs[field];
    const isPending = isInterrupted && input?.isSetAfterCreate && before === input.default;
    return !input?.secret && !isPending;
  });

/**
 * Creates the object. The service may return an object that an earlier attempt created with the same idempotency key.
 * This object is updated to match the inputs. If an update would require a replacement, or would revert a change that a
 * different actor made, the function throws an error instead. If a different resource has claimed or declared the
 * returned object, the function creates a new object.
 */
async function create(creation: Creation): Promise<Existing<Values>> {
  const { definition, connection, inputs, origin } = creation;
  const created = await definition.create(connection, inputs, origin);
  const isMoved = isDeclaredByAnother(creation, created);
  if (origin.isOthers(created.id) || (isMoved && !definition.identity))
    return create({ ...creation, origin: origin.after(created.id) });
  const changes = diff(definition, created.state, inputs);
  // The object has an identity here, so the service cannot create a second object with the same identity.
  if (isMoved) throw existsAlready(creation, created.id, conflicting(definition, changes));
  origin.claim(created.id);
  if (changes.length === 0) return created;
  if (changes.some((change) => change.replaces)) throw existsAlready(creation, created.id, changes);
  const differing = conflicting(definition, changes, true);
  if (differing.length > 0 && (await isChangedByAnother(creation, created)))
    throw existsAlready(creation, created.id, differing);
  return updated(creation, created);
}

/**
 * Returns true if an earlier attempt created the object, and a different resource or stack has declared it since,
 * according to the service. Returns false on other servers, which store no declarations.
 */
function isDeclaredByAnother({ declaration }: Creation, { live }: Existing<Values>): boolean {
  const owner = live?.declaredBy;
  return owner !== undefined && declaration !== undefined && !isSameDeclaration(owner, declaration);
}

/**
 * Returns true if an earlier attempt created the object, and an actor other than the declaring resource made the last
 * change to it. Also returns true if the credential cannot read the last change. Returns false on other servers,
 * because they do not record changes. Returns false if the program sets `adopt: "overwrite"`.
 */
async function isChangedByAnother(creation: Creation, created: Existing<Values>): Promise<boolean> {
  const { definition, connection, inputs, declaration } = creation;
  const { object } = definition;
  const isRecorded = object && declaration && created.live?.revision !== undefined;
  if (!isRecorded || inputs.adopt === "overwrite") return false;
  const { tenant, client } = await connection.tenant(tenantOf(created));
  const name = { kind: object.kind, id: objectId(definition, created) };
  const last = await lastChangeIfReadable(client, tenant, name);
  return last?.declaredBy === undefined || !isSameDeclaration(last.declaredBy, declaration);
}

const isSameDeclaration = (one: Declaration, two: Declaration): boolean =>
  isSameStack(one, two) && one.resource === two.resource;

async function adoptExisting(
  creation: Creation,
  existing: Existing<Values>,
  adopt: Adopt,
  isInterrupted = false,
): Promise<Existing<Values>> {
  const { definition, inputs, origin, adopted } = creation;
  // Concurrent creates of identical objects can find the same existing object. If a different resource has claimed this
  // object, the search is repeated.
  if (!definition.identity && origin.isOthers(existing.id)) return createOrAdopt(creation);
  const changes = diff(definition, existing.state, inputs);
  const conflicts = conflicting(definition, changes, isInterrupted);
  if (conflicts.length > 0 && adopt !== "overwrite") throw existsAlready(creation, existing.id, conflicts);
  origin.claim(existing.id);
  adopted(existing.id);
  if (changes.length > 0) return updated(creation, existing, true);
  return withSecrets(creation, existing);
}

/**
 * Returns the object of a replaced resource if the inputs declare this object. Returns undefined if the create needs a
 * new object, or if a different stack was the last to declare the object.
 */
async function replacedObject(creation: Creation): Promise<Existing<Values> | undefined> {
  const { definition, connection, declaration, inputs, origin, inherits } = creation;
  if (!inherits) return undefined;
  const isOther = (id: string) => origin.isOthers(id) || !inherits(id);
  const existing = await definition.find?.(connection, inputs, isOther);
  if (!existing || isOther(existing.id)) return undefined;
  const owner = existing.live?.declaredBy;
  return owner && declaration && !isSameStack(owner, declaration) ? undefined : existing;
}

/**
 * Inherits the object of a replaced resource. Updates the object to match the inputs, even without `adopt:
 * "overwrite"`.
 */
async function inherit(creation: Creation, existing: Existing<Values>): Promise<Existing<Values>> {
  const { definition, inputs, origin, inherited } = creation;
  origin.claim(existing.id);
  inherited?.();
  const changes = diff(definition, existing.state, inputs);
  return changes.length > 0 ? updated(creation, existing, true) : withSecrets(creation, existing);
}

async function withSecrets(creation: Creation, existing: Existing<Values>): Promise<Existing<Values>> {
  const { definition, connection } = creation;
  const { id, state } = existing;
  const hasSecrets = Object.values(definition.outputs).some(({ secret }) => secret);
  // A search does not return secret outputs.
  return hasSecrets ? ((await definition.read(connection, id, state)) ?? createOrAdopt(creation)) : existing;
}

async function updated(
  { definition, connection, adopting = connection, inputs }: Creation,
  { id, state }: Existing<Values>,
  existedBefore = false,
): Promise<Existing<Values>> {
  try {
    const writing = existedBefore ? adopting : connection;
    return { id, state: await definition.update(writing, id, state, inputs) };
  } catch (error) {
    throw new UnfinishedError(id, state, error, existedBefore);
  }
}

/** The part of an error message that lists the possible origins of an existing, unmanaged object. */
const ORIGIN = said`${{ phrase: "elsewhere" }}, or previously managed by another ${{ phrase: "ofThisProgram" }}`;

/** The remedy if a different resource of the same program previously managed the existing object. */
const EXCHANGED = said`if another ${{ phrase: "ofThisProgram" }} managed it, change that resource first, ${{ phrase: "inTurn" }}`;

/**
 * Returns the error for an object that already exists.
 * @param changes the inputs whose values differ between the object and its declaration
 */
export function existsAlready(
  { definition, secretInputs = [] }: Pick<Creation, "definition" | "secretInputs">,
  id: string,
  changes: readonly InputChange[],
): ResourceError {
  const { name } = definition;
  if (!definition.inputs.adopt) {
    const detail = said`The object ${id} already exists and cannot be adopted`;
    const remedy = said`delete the object, or choose another name`;
    return new ResourceError(name, { code: "already_exists", detail, remedy });
  }
  const adopt = (value: Adopt) => ({ field: "adopt", value });
  if (changes.length === 0) {
    const detail = said`The object ${id} already exists (${ORIGIN}) and equals the declaration`;
    const remedy = said`set ${adopt(true)} ${{ phrase: "adopt" }}; ${EXCHANGED}`;
    return new ResourceError(name, { code: "already_exists", field: ["adopt"], detail, remedy });
  }
  const differences = changes.map(({ field, before, after }, index) => {
    const separator = index === 0 ? "" : "; ";
    return secretInputs.includes(field) || definition.inputs[field]?.secret
      ? said`${separator}${{ field }} (secret)`
      : said`${separator}${{ field }} is ${valueJson(before)}, declared ${valueJson(after)}`;
  });
  const detail = said`The object ${id} already exists (${ORIGIN}) and differs: ${differences.flat()}`;
  const remedy = said`declare the object as it is, or set ${adopt("overwrite")} to update it; ${EXCHANGED}`;
  return new ResourceError(name, { code: "already_exists", field: ["adopt"], detail, remedy });
}
