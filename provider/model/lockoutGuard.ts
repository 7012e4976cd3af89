import { LockoutGuardError } from "@gatehouse-access/sdk";
import { LOCKOUTS } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import type { Values } from "../values.ts";
import { withStates } from "./defineResource.ts";
import type { ResourceDefinition } from "./definition.ts";
import { optional } from "./fields.ts";

const allowLockout = optional(z.boolean(), {
  description:
    "Whether an update or deletion may remove or shorten the access of the user or workload that applies it, or leave no administrator except the owner. By default, `gatehouse-server` refuses such a change.",
  notDecisive: "the review finds lockouts by itself",
  default: false,
  isLocal: true,
});

/**
 * Adds the input `allowLockout` to a resource that gives access to a namespace. If `allowLockout` is false, the service
 * refuses updates and deletions that lock out the caller or the administrators. The state contains this input, but the
 * object on the service does not.
 */
export function guarded(definition: ResourceDefinition): ResourceDefinition {
  const { name, update } = definition;
  const guarding = (connection: Connection, { allowLockout }: Values) =>
    allowLockout ? connection : connection.guarding();
  return withStates(
    {
      ...definition,
      inputs: { ...definition.inputs, allowLockout },
      update: (connection, id, state, inputs) =>
        update(guarding(connection, inputs), id, state, inputs).catch(refused(name)),
      delete: (connection, id, state, isClaimed) =>
        definition
          .delete(guarding(connection, state), id, state, isClaimed)
          .catch(refused(name, said` and apply that change first`)),
    },
    (state, { allowLockout = false }) => ({ ...state, allowLockout }),
  );
}

/**
 * Returns an error handler for the requests of a resource. If the service refused a lockout, the handler throws an
 * error of the resource. It throws any other error unchanged.
 */
const refused =
  (resource: string, first = said``) =>
  (cause: unknown): never => {
    if (!(cause instanceof LockoutGuardError)) throw cause;
    const known = cause.lockout && LOCKOUTS[cause.lockout];
    const allow = said`set ${{ field: "allowLockout", value: true }}${first}`;
    const detail = known
      ? said`The change would ${known.effect}`
      : said`The service refused the change: ${cause.detail}`;
    const remedy = known ? said`${known.remedy}, or ${allow}` : allow;
    throw new ResourceError(
      resource,
      { code: "lockout", field: ["allowLockout"], detail, remedy },
      { cause },
    );
  };
