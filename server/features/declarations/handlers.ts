import {
  acceptedCredentials,
  type ClaimedKind,
  type Operation,
  type Operations,
  operations,
  type Role,
  roleAtLeast,
  takesDeclaredBy,
  takesIfMatch,
} from "@gatehouse-access/sdk/contract";
import { declaredColumn, type ManagedObject } from "../../changes/managedObject.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { Caller } from "../../http/access/identity.ts";
import type { Handler } from "../../http/handler.ts";
import { objects } from "../objects.ts";

/** The operations with which programs change an existing object, by the kind of the object. */
const changes = Map.groupBy(
  Object.values<Operation>(operations).filter(
    (operation) => takesDeclaredBy(operation) && takesIfMatch(operation) && operation.method !== "DELETE",
  ),
  ({ object }) => object,
);

/** Returns true if the caller may use at least one operation that changes objects of the kind. */
function mayChange(kind: ClaimedKind, { kind: caller }: Caller, role: Role): boolean {
  const credential = caller === "user" ? "jwt" : caller;
  return (changes.get(kind) ?? []).some(
    (operation) =>
      acceptedCredentials(operation).includes(credential) &&
      operation.minRole !== null &&
      roleAtLeast(role, operation.minRole),
  );
}

export const claimObject: Handler<Operations["claimObject"]> = async (context) => {
  const { services, identity, params, body } = context;
  const { kind, id } = params;
  const { tenant, caller, role } = identity;
  if (!mayChange(kind, caller, role)) throw new ForbiddenError("the caller may not change the object");
  const now = services.now();
  const managed: ManagedObject = objects[kind];
  await inSqlTransaction(services, kind === "member" ? "members" : tenant, async (tx) => {
    const row = await managed.find(tx, tenant, kind === "namespace" ? tenant : id);
    if (row === null || managed.declared(row) === null || (kind === "namespace" && id !== tenant))
      throw new NotFoundError("no such object in the namespace");
    await managed.declare?.(tx, tenant, id, declaredColumn(body, now) ?? "");
  });
  return { declared_by: { ...body, at: now.toISOString() } };
};
