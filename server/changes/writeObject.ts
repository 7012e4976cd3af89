import { isDeepStrictEqual } from "node:util";
import { IF_MATCH, type ObjectKind, type Operation, takesIfMatch } from "@gatehouse-access/sdk/contract";
import { deleteRows, type RowOf } from "../db/sql/rows.ts";
import { leaveToCommit, type SqlClient } from "../db/sql/sql.ts";
import { inSqlTransaction, within } from "../db/sql/transaction.ts";
import { ConflictError, NotFoundError, PreconditionError } from "../errors.ts";
import type { Caller, Member } from "../http/access/identity.ts";
import type { ObjectRequest, WriteContext, Written } from "../http/handler.ts";
import type { Services, SqlServices } from "../services.ts";
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
 * Runs an operation that changes an object as one transaction. The transaction authorizes the caller, checks
 * `If-Match`, runs the operation, and checks the lockout guard if the request requires it. It also stores the program
 * resource that declares the object, and records the change in the audit trail. If a step fails, the transaction is
 * rolled back.
 * @param objects access to the objects of each kind
 * @throws ConflictError the lockout guard rejects the write
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
  // If concurrent requests have the same Idempotency-Key, one of them creates the object. The other requests find this
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
 * Returns the lane of a write. Writes in the same lane share transactions. Each namespace has its own lane, but the
 * writes of members of all namespaces share one lane. On PostgreSQL, one index stores the members of all namespaces on
 * a few pages. Without a shared lane, concurrent writes of members from two namespaces would conflict.
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
    operation.creates ? undefined : lookUp(db, kind, facts),
  ]);
  // Report an authentication error first: only an authorized caller may see why the lookup failed.
  if (identified.status === "rejected") throw identified.reason;
  if (found.status === "rejected") throw found.reason;
  const identity = identified.value;
  const { id, before = null } = found.value ?? {};
  const declaredBefore = before === null ? null : kind.declared(before);
  if (takesIfMatch(operation)) checkRevision(declaredBefore, request.ifMatch);
  // The program resource from the request header is stored before the operation runs, so that the response contains it.
  // A create operation stores the program resource with the new row.
  const declaredBy = declaredColumn(request.declaration, services.now());
  const declares = id !== undefined && declaredBy !== null;
  const declaring = declares ? kind.declare?.(db, tenantId, id, declaredBy) : undefined;
  if (declaring) await leaveToCommit(db, declaring);

  const refuseLockout = request.isGuarded ? await guardLockout(services, request, identity) : undefined;
  let isFirst = true;
  let became: { readonly declared: Declared | null; readonly id: string | undefined } | undefined;
  const result = await request.run(services, identity, {
    found() {
      if (before === null) throw new NotFoundError(kind.missing);
      return declaring ? { ...before, declaredBy } : before;
    },
    repeated: () => {
      isFirst = false;
    },
    became: (row, newId) => {
      became = { declared: row === null ? null : kind.declared(row), id: newId };
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

async function lookUp(db: SqlClient, kind: ManagedObject, facts: Write) {
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
 * Compares the revision with `If-Match`. If the object does not exist, the check passes, because the operation then
 * responds with 404.
 */
function checkRevision(declared: Declared | null, expected: string | undefined): void {
  if (expected === undefined || declared === null) return;
  const present = `"${revisionOf(declared)}"`;
  const tags = expected.split(",").map((tag) => tag.trim());
  if (tags.includes(present) || tags.includes("*")) return;
  throw new PreconditionError(`${IF_MATCH}: the object has changed, and its revision is now ${present}`, {
    ETag: present,
  });
}

/**
 * The error of a create whose unique value, such as the name, is already in use. An unrelated object uses the value, or
 * the object of an earlier request with the same Idempotency-Key.
 */
class TakenError extends ConflictError {}

interface CreationContext {
  readonly services: { readonly db: SqlClient };
  /** Digest of the request's Idempotency-Key; null if the request has no Idempotency-Key. */
  readonly creationKey: string | null;
  repeated(): void;
}

interface Creation<Existing, Created> {
  /**
   * Returns the object that an earlier request with the Idempotency-Key created. Returns null if no such object exists.
   */
  find(tx: SqlClient, creationKey: string): Promise<Existing | null>;
  /** Creates the object. Returns null if another object already uses the unique value, such as the name. */
  create(tx: SqlClient): Promise<Created | null>;
  /** Error message if another object already uses the unique value, such as the name. */
  readonly taken: string;
}

/**
 * Creates an object. If an earlier request with the same Idempotency-Key created the object, returns that object
 * instead. Call this function in the transaction of `writeObject`. If a concurrent request with the same key created
 * the object first, `writeObject` retries once.
 * @throws TakenError another object has the same unique value
 */
export async function createOnce<Existing, Created>(
  context: CreationContext,
  creation: Creation<Existing, Created>,
): Promise<Existing | Created> {
  const { services, creationKey } = context;
  const { find, create, taken } = creation;
  const existing = creationKey === null ? null : await find(services.db, creationKey);
  if (existing !== null) {
    context.repeated();
    return existing;
  }
  const created = await create(services.db);
  if (created === null) throw new TakenError(taken);
  return created;
}

/**
 * Returns the handler of an operation that deletes an object. The handler deletes the object's row and the rows that
 * depend on it.
 * @param key the columns of a unique key
 */
export const deletion =
  <M extends Parameters<typeof deleteRows>[1]>(model: M, key: readonly (keyof RowOf<M>)[]) =>
  async ({
    services: { db },
    found,
    became,
  }: Pick<WriteContext<Operation, RowOf<M>>, "services" | "found"> &
    Pick<WriteContext<Operation, never>, "became">): Promise<undefined> => {
    const row = found();
    const values = Object.fromEntries(key.map((column) => [column, row[column]])) as Partial<RowOf<M>>;
    await leaveToCommit(db, deleteRows(db, model, values));
    became(null);
  };
