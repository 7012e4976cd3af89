import { ConflictError, RequestError } from "@gatehouse-access/sdk";
import { ResourceError, said } from "../resourceError.ts";
import {
  type Adopt,
  type Existing,
  type Origin,
  type ResourceDefinition,
  UnfinishedError,
} from "../resources/definition.ts";
import type { Connection } from "../service/connection.ts";
import { diff, type InputChange } from "./diff.ts";

type Values = Readonly<Record<string, unknown>>;

export interface Creation {
  readonly definition: ResourceDefinition;
  readonly connection: Connection;
  readonly inputs: Record<string, unknown>;
  readonly origin: Origin;
  /**
   * Names of inputs whose values no error may show.
   * @default none
   */
  readonly secretInputs?: readonly string[] | undefined;
  /** Takes note of an object that was taken over. */
  readonly adopted: (id: string) => void;
}

/**
 * Makes the object that the inputs declare. It may be done again after any failure:
 * - when an answer was lost, the request is sent again where the service knows idempotency keys; elsewhere an equal
 *   object is looked for first;
 * - when an earlier try made the object under the same idempotency key, that object is changed to the inputs;
 * - when the object was there before, it is taken over only if `adopt` says so.
 * @throws Error naming the object that exists already, what differs, and how to adopt it
 * @throws UnfinishedError when the object is there, but could not be changed to the inputs
 */
export async function createOrAdopt(creation: Creation): Promise<Existing<Values>> {
  const { definition, connection, inputs, origin } = creation;
  const adopt = inputs.adopt as Adopt;
  const mayTakeOver = adopt || definition.overwrites;
  if (mayTakeOver || mayDouble(definition, origin)) {
    const existing = await definition.find?.(connection, inputs, origin.isOthers);
    if (existing && !mayTakeOver) throw existsAlready(creation, existing.id, []);
    if (existing) return adoptExisting(creation, existing, adopt);
  }
  try {
    return await make(creation);
  } catch (error) {
    const unclear = error instanceof RequestError && error.outcome !== "none";
    if (!unclear) throw await explained(creation, error);
  }
  await connection.forget();
  // A service that knows the key answers with what it made for it. A search might find the equal object of another.
  if (!(await connection.knowsIdempotencyKeys(inputs.tenant as string | undefined))) {
    const existing = await definition.find?.(connection, inputs, origin.isOthers);
    if (existing) return adoptExisting(creation, existing, true);
  }
  try {
    return await make(creation);
  } catch (error) {
    throw await explained(creation, error);
  }
}

/**
 * True where an interrupted run may have made the object, nothing tells so, and the service would make another one: it
 * refuses no second object without an identity.
 */
const mayDouble = ({ identity }: ResourceDefinition, { isNamed }: Origin): boolean => !isNamed && !identity;

/** The error to throw: for a conflict, one that names the object in the way, and what to do. */
async function explained(creation: Creation, error: unknown): Promise<unknown> {
  const { definition, connection, inputs } = creation;
  if (!(error instanceof ConflictError)) return error;
  await connection.forget();
  const existing = await definition.find?.(connection, inputs);
  if (!existing) return error;
  return existsAlready(creation, existing.id, diff(definition, existing.state, inputs));
}

/**
 * Creates the object. The service may answer with one that an earlier try made under the same key: that is changed to
 * the inputs, unless a change would replace it. If it is another resource's by now, another one is made.
 */
async function make(creation: Creation): Promise<Existing<Values>> {
  const { definition, connection, inputs, origin } = creation;
  const made = await definition.create(connection, inputs, origin);
  if (origin.isOthers(made.id)) return make({ ...creation, origin: origin.after(made.id) });
  origin.claim(made.id);
  const changes = diff(definition, made.state, inputs);
  if (changes.length === 0) return made;
  if (changes.some((change) => change.replaces)) throw existsAlready(creation, made.id, changes);
  return changed(creation, made);
}

async function adoptExisting(
  creation: Creation,
  existing: Existing<Values>,
  adopt: Adopt,
): Promise<Existing<Values>> {
  const { definition, inputs, origin, adopted } = creation;
  // Resources that are made at the same time find the same one of several equal objects.
  if (!definition.identity && origin.isOthers(existing.id)) return createOrAdopt(creation);
  const changes = diff(definition, existing.state, inputs);
  if (changes.length > 0 && adopt !== "overwrite") throw existsAlready(creation, existing.id, changes);
  origin.claim(existing.id);
  adopted(existing.id);
  return changes.length === 0 ? existing : changed(creation, existing, true);
}

async function changed(
  { definition, connection, inputs }: Creation,
  { id, state }: Existing<Values>,
  wasThere = false,
): Promise<Existing<Values>> {
  try {
    return { id, state: await definition.update(connection, id, state, inputs) };
  } catch (error) {
    throw new UnfinishedError(id, state, error, wasThere);
  }
}

/** What to do when resources of one program exchange their objects. */
const ANOTHER = said`another ${{ phrase: "ofThisProgram" }} has had it (then change that one first, ${{ phrase: "inTurn" }})`;

/**
 * The error for an object that is there already.
 * @param changes the inputs in which it differs from what is declared
 */
export function existsAlready(
  { definition, secretInputs = [] }: Pick<Creation, "definition" | "secretInputs">,
  id: string,
  changes: readonly InputChange[],
): ResourceError {
  const { name } = definition;
  if (!definition.inputs.adopt) {
    const detail = said`${id} exists already, and cannot be taken over`;
    const remedy = said`remove it, or choose another name`;
    return new ResourceError(name, { code: "already_exists", detail, remedy });
  }
  const elsewhere = { phrase: "elsewhere" } as const;
  const adopt = (value: Adopt) => ({ field: "adopt", value });
  if (changes.length === 0) {
    const detail = said`${id} exists already, equal to what is declared: ${elsewhere}, or ${ANOTHER}`;
    const remedy = said`set ${adopt(true)} ${{ phrase: "takeOver" }}`;
    return new ResourceError(name, { code: "already_exists", field: ["adopt"], detail, remedy });
  }
  const differences = changes.map(({ field, before, after }, index) => {
    const separator = index === 0 ? "" : "; ";
    return secretInputs.includes(field)
      ? said`${separator}${{ field }}, which is secret`
      : said`${separator}${{ field }} is ${JSON.stringify(before) ?? "nothing"}, declared ${JSON.stringify(after)}`;
  });
  const detail = said`${id} exists already, ${elsewhere}, or ${ANOTHER}, and differs: ${differences.flat()}`;
  const remedy = said`declare it as it is, or set ${adopt("overwrite")} to change it`;
  return new ResourceError(name, { code: "already_exists", field: ["adopt"], detail, remedy });
}
