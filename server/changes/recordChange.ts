import type { Declaration } from "@gatehouse-access/sdk/contract";
import { insertRows } from "../db/sql/rows.ts";
import type { Caller } from "../http/access/identity.ts";
import type { RequestFacts } from "../http/listener/requestFacts.ts";
import type { SqlServices } from "../services.ts";
import type { Declared } from "./managedObject.ts";

/**
 * An operator, as the caller of a command. The command reaches the service over the administration socket. The socket
 * requires no login.
 */
export interface Operator {
  readonly kind: "operator";
}

/** A change as stored in the audit trail. */
export interface Change {
  /** Tenant id of the namespace. Null if the change does not concern a namespace. */
  readonly tenantId: string | null;
  readonly caller: Caller | Operator | { readonly kind: "device"; readonly uid: string };
  /**
   * Id and client address of the request that causes the change. Both are empty strings if an operator causes the
   * change.
   */
  readonly request: Pick<RequestFacts, "id" | "address">;
  /** Id of the operation, or name of the command. */
  readonly operation: string;
  readonly object: { readonly kind: string; readonly id: string };
  /** The declared fields before the change. They contain no secrets, because users can read the audit trail. */
  readonly before: Declared | null;
  readonly after: Declared | null;
  /** The program resource that declares the object, according to the request. */
  readonly declaration?: Declaration | null;
}

/** Adds a change to the audit trail. Call it in the transaction that stores the change. */
export async function recordChange(services: Pick<SqlServices, "db" | "now">, change: Change): Promise<void> {
  const { tenantId, caller, request, operation, object, before, after, declaration } = change;
  const actor = actorOf(caller);
  await insertRows(services.db, "AuditEntry", [
    {
      tenantId,
      operation,
      requestId: request.id,
      address: request.address,
      at: services.now(),
      actorKind: actor.kind,
      actorId: actor.id,
      actorName: actor.name,
      objectKind: object.kind,
      objectId: object.id,
      before: before && JSON.stringify(before),
      after: after && JSON.stringify(after),
      declaredBy: declaration ? JSON.stringify(declaration) : null,
    },
  ]);
}

function actorOf(caller: Change["caller"]): { kind: string; id: string; name: string } {
  switch (caller.kind) {
    case "user":
      return { kind: "user", id: caller.userId, name: caller.username };
    case "apikey":
      return { kind: "apikey", id: caller.name, name: caller.name };
    case "workload":
      return { kind: "workload", id: caller.workloadId, name: caller.name };
    case "device":
      return { kind: "device", id: caller.uid, name: "" };
    case "operator":
      return { kind: "operator", id: "", name: "" };
  }
}
