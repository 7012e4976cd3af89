import { LockoutGuardError } from "@gatehouse-access/sdk";
import { LOCKOUTS } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import {
  defineResource,
  type Inputs,
  type Outputs,
  optional,
  type ResourceDefinition,
} from "./definition.ts";

const allowLockout = optional(z.boolean(), {
  description:
    "Whether an update or deletion may remove or shorten the access of the user or workload that applies it, or leave no administrator except the owner. By default, `gatehouse-server` refuses such a change.",
  notDecisive: "the review finds lockouts by itself",
  default: false,
  isLocal: true,
});

type Guarded = { readonly allowLockout?: boolean };

/**
 * Defines a resource that gives access to a namespace, with the input `allowLockout`. Without `allowLockout`, the service
 * refuses updates and deletions that lock out the caller or the administrators. The input is stored only in states.
 */
export function defineGuarded<I extends Inputs, O extends Outputs>(
  definition: ResourceDefinition<I, O>,
): ResourceDefinition<I, O> {
  const { name, find, list, create, read, update } = definition;
  const withInput = <S extends object>(state: S, { allowLockout = false }: Guarded) => ({
    ...state,
    allowLockout,
  });
  const guarded = (connection: Connection, { allowLockout = false }: Guarded) =>
    allowLockout ? connection : connection.guarding();
  return defineResource({
    ...definition,
    inputs: { ...definition.inputs, allowLockout },

    ...(find && {
      async find(connection, inputs, isOthers) {
        const found = await find(connection, inputs, isOthers);
        return found && { ...found, state: withInput(found.state, inputs) };
      },
    }),

    ...(list && {
      async list(connection, tenant) {
        const objects = await list(connection, tenant);
        return objects.map((object) => ({ ...object, state: withInput(object.state, {}) }));
      },
    }),

    async create(connection, inputs, origin) {
      const created = await create(connection, inputs, origin);
      return { ...created, state: withInput(created.state, inputs) };
    },

    async read(connection, id, state) {
      const found = await read(connection, id, state);
      return found && { ...found, state: withInput(found.state, state) };
    },

    async update(connection, id, state, inputs) {
      const updated = update(guarded(connection, inputs), id, state, inputs);
      return withInput(await updated.catch(refused(name)), inputs);
    },

    async delete(connection, id, state, isClaimed) {
      const deleted = definition.delete(guarded(connection, state), id, state, isClaimed);
      await deleted.catch(refused(name, said` and apply that change first`));
    },
  });
}

/** Returns a function that throws the error of a resource for a refused lockout, and any other error unchanged. */
const refused =
  (resource: string, first = said``) =>
  (cause: unknown): never => {
    if (!(cause instanceof LockoutGuardError)) throw cause;
    const known = cause.lockout && LOCKOUTS[cause.lockout];
    const allow = said`set ${{ field: "allowLockout", value: true }}${first}`;
    const detail = known ? said`the change would ${known.effect}` : said`${cause.detail}`;
    const remedy = known ? said`${known.remedy}, or ${allow}` : allow;
    throw new ResourceError(
      resource,
      { code: "lockout", field: ["allowLockout"], detail, remedy },
      { cause },
    );
  };
