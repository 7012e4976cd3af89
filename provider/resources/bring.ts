import { ConflictError, RequestError } from "@gatehouse-access/sdk";
import type { Connection } from "./connection.ts";
import {
  type Adopt,
  type Existing,
  type Origin,
  PartialFailure,
  type ResourceDefinition,
} from "./definition.ts";
import { diff, type FieldChange } from "./diff.ts";

type Values = Readonly<Record<string, unknown>>;

/** An object, and whether it was there before. */
export interface Brought extends Existing<Values> {
  readonly takenOver: boolean;
}

/**
 * Makes the object that the inputs declare, so that doing it again after any failure is safe:
 * - an answer that was lost is looked for before the request is repeated;
 * - an object that an earlier try made under the same idempotency key is brought to the inputs;
 * - one that was there before is taken over only where `adopt` says so.
 * @throws Error naming the object that exists already, what differs, and how to adopt it
 */
export async function bring(
  definition: ResourceDefinition,
  connection: Connection,
  inputs: Record<string, unknown>,
  origin: Origin,
): Promise<Brought> {
  const adopt = inputs.adopt as Adopt;
  if (adopt || definition.overwrites) {
    const existing = await definition.find?.(connection, inputs);
    if (existing) return takeOver(definition, connection, inputs, existing, origin, adopt);
  }
  const made = await makeOnce(definition, connection, inputs, origin);
  if (!made.takenOver)
    return { ...(await settle(definition, connection, inputs, made, origin)), takenOver: false };
  return made;
}

async function makeOnce(
  definition: ResourceDefinition,
  connection: Connection,
  inputs: Record<string, unknown>,
  origin: Origin,
): Promise<Brought> {
  try {
    return { ...(await definition.create(connection, inputs, origin)), takenOver: false };
  } catch (error) {
    const unclear = error instanceof RequestError && error.outcome !== "none";
    if (!unclear && !(error instanceof ConflictError)) throw error;
    await connection.forget();
    const existing = await definition.find?.(connection, inputs);
    if (unclear) {
      if (existing) return takeOver(definition, connection, inputs, existing, origin, true);
      return { ...(await definition.create(connection, inputs, origin)), takenOver: false };
    }
    throw existing
      ? existsAlready(definition, existing.id, differences(definition, existing, inputs))
      : error;
  }
}

/** What an earlier try made for other inputs is brought to these ones. */
async function settle(
  definition: ResourceDefinition,
  connection: Connection,
  inputs: Record<string, unknown>,
  made: Existing<Values>,
  origin: Origin,
): Promise<Existing<Values>> {
  const changes = differences(definition, made, inputs);
  if (changes.length === 0) return made;
  if (changes.some((change) => change.replaces)) {
    await definition.delete(connection, made.id, made.state, () => false);
    return definition.create(connection, inputs, origin);
  }
  return changed(definition, connection, inputs, made);
}

async function takeOver(
  definition: ResourceDefinition,
  connection: Connection,
  inputs: Record<string, unknown>,
  existing: Existing<Values>,
  origin: Origin,
  adopt: Adopt,
): Promise<Brought> {
  const changes = differences(definition, existing, inputs);
  if (changes.length > 0 && adopt !== "overwrite") throw existsAlready(definition, existing.id, changes);
  origin.claim(existing.id);
  notice(`${definition.name} "${origin.name}": took over ${existing.id}, which was there already`);
  if (changes.length === 0) return { ...existing, takenOver: true };
  return { ...(await changed(definition, connection, inputs, existing)), takenOver: true };
}

async function changed(
  definition: ResourceDefinition,
  connection: Connection,
  inputs: Record<string, unknown>,
  existing: Existing<Values>,
): Promise<Existing<Values>> {
  try {
    const state = await definition.update(connection, existing.id, existing.state, inputs);
    return { id: existing.id, state };
  } catch (error) {
    throw new PartialFailure(existing.id, existing.state, error);
  }
}

const differences = (definition: ResourceDefinition, { state }: Existing<Values>, inputs: Values) =>
  diff(definition, state, inputs);

function existsAlready(definition: ResourceDefinition, id: string, changes: readonly FieldChange[]): Error {
  const { name } = definition;
  if (!definition.inputs.adopt) {
    return new Error(
      `${name}: ${id} exists already, and cannot be taken over; remove it, or choose another name`,
    );
  }
  if (changes.length === 0) {
    return new Error(
      `${name}.adopt: ${id} exists already, by hand or by another program, equal to what is declared; set adopt: true to take it over`,
    );
  }
  const list = changes.map(
    ({ field, before, after }) => `${field} is ${JSON.stringify(before)}, declared ${JSON.stringify(after)}`,
  );
  return new Error(
    `${name}.adopt: ${id} exists already, by hand or by another program, and differs: ${list.join("; ")}; declare it as it is, or set adopt: "overwrite" to change it`,
  );
}

// The engines show what a provider prints as a message of the run.
function notice(text: string): void {
  console.log(text);
}
