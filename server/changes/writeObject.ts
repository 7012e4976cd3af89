import { isDeepStrictEqual } from "node:util";
import { IF_MATCH, type ObjectKind, takesIfMatch } from "@gatehouse-access/sdk/contract";
import { leaveToCommit, type SqlClient } from "../db/sql/sql.ts";
import { inSqlTransaction, within } from "../db/sql/transaction.ts";
import { PreconditionError } from "../errors.ts";
import type { Caller, Member } from "../http/access/identity.ts";
import type { ObjectRequest, Written } from "../http/handler.ts";
import type { Services, SqlServices } from "../services.ts";
import { TakenError } from "./createOnce.ts";
import { guardLockout } from "./lockoutGuard.ts";
import {
  type Declared,
  declaredColumn,
  type ManagedObject,
  revisionOf,
  type Write,
} from "./managedObject.ts";
import { recordChange } from "./recordChange.ts";

/**
 * Runs an operation that changes an object as one transaction. It authorizes the caller, checks `If-Match`, runs the
 * operation, checks the lockout guard if the request asks for it, stores the program resource that declares the object,
 * and records the change in the audit trail. If a step fails, the transaction is rolled back.
 * @param objects access to the objects of each kind
 * @throws ConflictError the lockout guard refuses the write
 * @throws PreconditionError the revision of the object does not match `If-Match`
 */
export async function writeObject(
  objects: Readonly<Record<ObjectKind, ManagedObject>>,
  services: Services,
  request: ObjectRequest,
): Promise<Written> {
  const kind = objects[request.operation.object];
  const begin = () =>
    inSqlTransaction(services, laneOf(request), (tx) => write(within(services, tx), kind, request));
  // If several requests have the same Idempotency-Key, one request creates the object. The other requests find this
  // object on their second attempt.
  for (let again = request.creationKey !== null; ; again = false) {
    try {
      return await begin();
    } catch (error) {
      if (!again || !(error instanceof TakenError)) throw error;
    }
  }
}

/**
 * Returns the lane of a write. Writes in the same lane share transactions. Each namespace has a lane, but all writes of
 * members share one lane: on PostgreSQL, an index stores the members of all namespaces on a few pages, so concurrent
 * writes of members from two namespaces would conflict.
 */
const laneOf = ({ operation, sender }: ObjectRequest): string =>
  operation.object === "member" ? "members" : sender.tenant;

const callerOf = (identity: Caller | Member): Caller => ("caller" in identity ? identity.caller : identity);

async function write(services: SqlServices, kind: ManagedObject, request: ObjectRequest): Promise<Written> {
  const { operation, sender } = request;
  const tenantId = sender.tenant;
  const facts: Write = {
    caller: callerOf(sender),
    tenantId,
    params: request.params as Write["params"],
    body: (request.body ?? {}) as Write["body"],
    done: false,
    result: undefined,
  };
  const { db } = services;
  // Authentication and lookup run concurrently. `allSettled` waits for both even if one fails, so that no database
  // statement of the request continues after the response.
  const [identified, found] = await Promise.allSettled([
    request.identify(services),
    operation.creates ? undefined : findObject(db, kind, facts),
  ]);
  // Report an authentication error first: only an authorized caller may learn why the lookup failed.
  if (identified.status === "rejected") throw identified.reason;
  if (found.status === "rejected") throw found.reason;
  const identity = identified.value;
  const { id, before = null } = found.value ?? {};
  const declaredBefore = before === null ? null : kind.declared(before);
  if (takesIfMatch(operation)) checkRevision(declaredBefore, request.ifMatch);
  // The program resource in the request header is stored before the operation runs, so that the response contains the
  // program resource. A create operation stores it with the new row.
  const declaredBy = declaredColumn(request.declaration, services.now());
  const declares = id !== undefined && declaredBy !== null;
  const declaring = declares ? kind.declare?.(db, tenantId, id, declaredBy) : undefined;
  if (declaring) await leaveToCommit(db, declaring);

  const refuseLockout = request.isGuarded ? await guardLockout(services, request, identity) : undefined;
  let isFirst = true;
  let became: { readonly declared: Declared | null; readonly id: string | undefined } | undefined;
  const result = await request.run(services, identity, {
    found: before !== null && declaring ? { ...before, declaredBy } : before,
    repeated: () => {
      isFirst = false;
    },
    became: (declared, newId) => {
      became = { declared, id: newId };
    },
  });
  await refuseLockout?.();
  const done = { ...facts, done: true, result: result as Write["result"] };
  const idAfter = became?.id ?? (await kind.id(db, done));
  const after = became === undefined ? await readDeclared(db, kind, tenantId, idAfter) : became.declared;
  if (isFirst && !isDeepStrictEqual(declaredBefore, after)) {
    const recorded = recordChange(services, {
      tenantId: operation.object === "namespace" ? idAfter : tenantId,
      caller: callerOf(identity),
      request: request.facts,
      operation: operation.id,
      object: { kind: operation.object, id: id ?? idAfter },
      before: declaredBefore,
      after,
      declaration: request.declaration,
    });
    await leaveToCommit(db, recorded);
  }
  return { result, revision: after === null ? undefined : revisionOf(after) };
}

async function findObject(db: SqlClient, kind: ManagedObject, facts: Write) {
  const id = await kind.id(db, facts);
  return { id, before: await kind.find(db, facts.tenantId, id) };
}

async function readDeclared(
  db: SqlClient,
  kind: ManagedObject,
  tenantId: string,
  id: string,
): Promise<Declared | null> {
  const row = await kind.find(db, tenantId, id);
  return row === null ? null : kind.declared(row);
}

/**
 * Compares the revision with `If-Match`. If the object does not exist, the check passes: the operation itself then
 * responds with 404.
 */
function checkRevision(declared: Declared | null, expected: string | undefined): void {
  if (expected === undefined || declared === null) return;
  const present = `"${revisionOf(declared)}"`;
  const tags = expected.split(",").map((tag) => tag.trim());
  if (tags.includes(present) || tags.includes("*")) return;
  throw new PreconditionError(`${IF_MATCH}: the object has changed, its revision is ${present}`, {
    ETag: present,
  });
}
