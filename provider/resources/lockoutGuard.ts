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
  default: false,
});

interface Guarded {
  readonly allowLockout?: boolean;
}

/**
 * Defines a resource that gives access to a namespace, with the input `allowLockout`. Without `allowLockout`, the service
 * refuses updates and deletions that lock out the caller or the administrators. The input is stored only in states.
 */
export function defineGuarded<I extends Inputs, O extends Outputs>(
  definition: ResourceDefinition<I, O>,
): ResourceDefinition<I, O> {
  const { name, find, list, create, read, update } = definition;
  const withInput = <S extends object>(
    state: S,
    { allowLockout = false }: Guarded,
  ): S & Required<Guarded> => ({
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
        return objects.map((object) => ({ ...object, state: object.state && withInput(object.state, {}) }));
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
      const updated = await update(guarded(connection, inputs), id, state, inputs).catch((error: unknown) => {
        throw lockoutError(name, error);
      });
      return withInput(updated, inputs);
    },

    async delete(connection, id, state, isClaimed) {
      await definition.delete(guarded(connection, state), id, state, isClaimed).catch((error: unknown) => {
        throw lockoutError(name, error, said` and apply that change first`);
      });
    },
  });
}

/** Returns the error of a resource for a refused lockout, and any other error unchanged. */
function lockoutError(resource: string, error: unknown, first = said``): unknown {
  if (!(error instanceof LockoutGuardError)) return error;
  const known = error.lockout && LOCKOUTS[error.lockout];
  const allow = said`set ${{ field: "allowLockout", value: true }}${first}`;
  return new ResourceError(
    resource,
    {
      code: "lockout",
      field: ["allowLockout"],
      detail: known ? said`the change would ${known.effect}` : said`${error.detail}`,
      remedy: known ? said`${known.remedy}, or ${allow}` : allow,
    },
    { cause: error },
  );
}
