import { PreconditionFailedError, type WriteCondition } from "@gatehouse-access/sdk";
import type { Existing, ResourceDefinition } from "../model/definition.ts";
import type { InputField } from "../model/fields.ts";
import { idWithin, sameValue } from "../model/values.ts";
import { ResourceError, said } from "../resourceError.ts";
import { actorText, lastChangeIfReadable } from "../service/auditTrail.ts";
import type { Connection } from "../service/connection.ts";
import type { Values } from "../values.ts";
import { valueJson } from "../words.ts";
import { diff } from "./diff.ts";

/** A declared input whose live value differs from the state and from the declaration. */
export interface OutOfBandChange {
  readonly field: string;
  /** The value in the state. */
  readonly known: unknown;
  /** The value on the service. */
  readonly live: unknown;
}

/** An update of one object, with the state before the update and the declared inputs. */
export interface PlannedUpdate {
  readonly definition: ResourceDefinition;
  readonly id: string;
  readonly state: Values;
  /** The declared inputs, in canonical form. */
  readonly inputs: Values;
  /**
   * Names of inputs whose values must not appear in errors.
   * @default none
   */
  readonly secretInputs?: readonly string[] | undefined;
}

/**
 * Returns the declared inputs that a different actor changed since the state was written. An update would revert these
 * changes, because it sends all inputs. Omits inputs whose live value equals the declaration, and tags that this run
 * renamed. Also omits secrets, because the service does not return them.
 * @param newName returns the name of a tag after the renames of this run
 */
export function outOfBandChanges(
  { definition, state, inputs }: Pick<PlannedUpdate, "definition" | "state" | "inputs">,
  live: Values,
  newName: (tag: string) => string = (tag) => tag,
): OutOfBandChange[] {
  const renamed = withNewNames(definition, state, newName);
  return Object.entries(definition.inputs).flatMap(([name, field]) => {
    const isCompared = !field.transient && !field.isLocal && !field.secret && inputs[name] !== undefined;
    const unchanged = [state[name], renamed[name], inputs[name]];
    if (!isCompared || unchanged.some((value) => isSame(field, live, live[name], value))) return [];
    return [{ field: name, known: state[name], live: live[name] }];
  });
}

/** Returns the state with the new names of its tags. */
function withNewNames(
  { tags }: Pick<ResourceDefinition, "tags">,
  state: Values,
  newName: (tag: string) => string,
): Values {
  if (!tags) return state;
  const field = "gives" in tags ? tags.gives : tags.needs;
  return { ...state, [field]: withNewName(state[field], newName) };
}

/** @param value a tag, a list of tags, or a filter */
function withNewName(value: unknown, newName: (tag: string) => string): unknown {
  if (typeof value === "string") return newName(value);
  if (Array.isArray(value)) return value.map((tag) => withNewName(tag, newName));
  if (typeof value !== "object" || value === null || !("tags" in value)) return value;
  return { ...value, tags: withNewName(value.tags, newName) };
}

const isSame = (field: InputField, object: Values, live: unknown, value: unknown): boolean =>
  sameValue(field, live, value) || (value !== undefined && (field.sameAs?.(object, value as never) ?? false));

/**
 * Reads the object before an update, and rejects the update if it would revert a change that a different actor made.
 * @returns the condition under which the service may perform the update. Undefined if the service has no revisions, or
 *   if the object does not exist
 * @throws ResourceError (`changed_out_of_band`) with the changed inputs, the actor and the remedy
 */
async function requireUnchanged(
  connection: Connection,
  update: PlannedUpdate,
): Promise<WriteCondition | undefined> {
  const { definition, id, state } = update;
  const changesOf = async (live: Values): Promise<OutOfBandChange[]> => {
    if (!definition.tags) return outOfBandChanges(update, live);
    const { tagWork } = await connection.tenant(tenantOf({ id, state: live }));
    return outOfBandChanges(update, live, (tag) => tagWork.newName(tag));
  };
  let found = await definition.read(connection, id, state);
  if (found && (await changesOf(found.state)).length > 0) {
    // The object may come from a read before the run wrote tags, devices or members. So the object is read again.
    await connection.forget();
    found = await definition.read(connection, id, state);
  }
  if (found?.id !== id) return undefined;
  const changes = await changesOf(found.state);
  if (changes.length > 0) throw await changedError(connection, update, found, changes);
  const { object } = definition;
  const revision = found.live?.revision;
  return object && revision !== undefined
    ? { kind: object.kind, id: objectId(definition, found), revision }
    : undefined;
}

/**
 * Returns the error that {@link requireUnchanged} throws. Returns undefined if the update would not revert a change
 * that a different actor made.
 */
export async function changeConflict(
  connection: Connection,
  update: PlannedUpdate,
): Promise<ResourceError | undefined> {
  try {
    await requireUnchanged(connection, update);
    return undefined;
  } catch (error) {
    if (error instanceof ResourceError && error.code === "changed_out_of_band") return error;
    throw error;
  }
}

/** Returns the id of the object in the service's paths, audit trail and declarations. */
export const objectId = (
  { object }: Pick<ResourceDefinition, "object">,
  { id, state }: Pick<Existing<Values>, "id" | "state">,
): string => object?.id?.(id, state) ?? idWithin({ id });

/** Returns the id of the object's namespace. For a namespace, returns the id of the namespace itself. */
export const tenantOf = ({ id, state: { tenant = id } }: Pick<Existing<Values>, "id" | "state">): string =>
  String(tenant);

/** Maximum number of attempts for an update, if the object changes during the update. */
const ATTEMPTS = 5;

/**
 * Updates an object. Throws an error if the update would revert a change that a different actor made since the state
 * was written. If the live value already equals the declaration, nothing is reverted. If the object changes between the
 * read and the write, a service with revisions rejects the write. In this case, the object is read again.
 * @throws ResourceError (`changed_out_of_band`)
 */
export async function updateUnchanged(connection: Connection, update: PlannedUpdate): Promise<Values> {
  const { definition, id, state, inputs } = update;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const checked = connection.checkingFirstWrite(() => requireUnchanged(connection, update));
      return await definition.update(checked, id, state, inputs);
    } catch (error) {
      if (!(error instanceof PreconditionFailedError) || attempt === ATTEMPTS) throw error;
      await connection.forget();
      const found = await definition.read(connection, id, state);
      // An earlier attempt may have updated the object although its response was lost.
      if (found?.id === id && diff(definition, found.state, inputs).length === 0) return found.state;
    }
  }
}

/** Returns the error for an update that would revert changes that a different actor made. */
async function changedError(
  connection: Connection,
  { definition, secretInputs = [] }: PlannedUpdate,
  found: Existing<Values>,
  changes: readonly OutOfBandChange[],
): Promise<ResourceError> {
  const { object } = definition;
  const tenant = tenantOf(found);
  const { client } = await connection.tenant(tenant);
  const change =
    object && found.live?.revision !== undefined
      ? await lastChangeIfReadable(client, tenant, { kind: object.kind, id: objectId(definition, found) })
      : undefined;
  const actor = change ? said`; ${actorText(change)}` : said``;
  const texts = changes.map(({ field, known, live }, index) => {
    const separator = index === 0 ? "" : "; ";
    return secretInputs.includes(field)
      ? said`${separator}${{ field }} (secret)`
      : said`${separator}${{ field }} is ${valueJson(live)} on the service, and ${valueJson(known)} in the state`;
  });
  return new ResourceError(definition.name, {
    code: "changed_out_of_band",
    field: [changes[0]?.field ?? "id"],
    detail: said`The update would revert a change that another actor made: ${texts.flat()}${actor}`,
    remedy: said`${{ phrase: "refresh" }} to see and revert the change, or declare the live value`,
  });
}
