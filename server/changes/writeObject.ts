import { isDeepStrictEqual } from "node:util";
import { IF_MATCH, type ObjectKind, takesIfMatch } from "@gatehouse-access/sdk/contract";
import { inTurn } from "../db/inTurn.ts";
import { inTransaction, within } from "../db/transaction.ts";
import { PreconditionError } from "../errors.ts";
import type { ObjectRequest, Written } from "../http/handler.ts";
import type { Services } from "../services.ts";
import { TakenError } from "./createOnce.ts";
import { type Declared, type ManagedObject, revisionOf, type Write } from "./managedObject.ts";
import { recordChange } from "./recordChange.ts";

/**
 * Creations that count what is there already. Each changes what the others of its namespace have counted: side by side
 * most of them would only begin again. Others do not, and are faster without taking turns.
 */
const COUNTING: ReadonlySet<string> = new Set(["createFirewallRule", "createTunnel"]);

/**
 * Runs an operation that changes an object as one transaction: the caller may still do it, the object is as
 * `If-Match` says, and the change stands in the audit trail, or nothing has happened.
 * @param objects how the objects of each kind are found and read
 * @throws PreconditionError the object has another revision
 */
export async function writeObject(
  objects: Readonly<Record<ObjectKind, ManagedObject>>,
  services: Services,
  request: ObjectRequest,
): Promise<Written> {
  const kind = objects[request.operation.object];
  const begin = () => inTransaction(services, (tx) => write(within(services, tx), kind, request));
  const { operation, tenantId } = request;
  const turn = tenantId && COUNTING.has(operation.id) ? `${operation.id} ${tenantId}` : undefined;
  // Of requests with one Idempotency-Key the first one has made the object; the others find it in a second try.
  for (let again = request.creationKey !== null; ; again = false) {
    try {
      return await (turn === undefined ? begin() : inTurn(turn, begin));
    } catch (error) {
      if (!again || !(error instanceof TakenError)) throw error;
    }
  }
}

async function write(services: Services, kind: ManagedObject, request: ObjectRequest): Promise<Written> {
  const { operation } = request;
  const identity = await request.identify(services);
  const caller = "caller" in identity ? identity.caller : identity;
  const facts: Write = {
    caller,
    tenantId: identity.tenant,
    params: request.params as Write["params"],
    body: (request.body ?? {}) as Write["body"],
    done: false,
    result: undefined,
  };
  const { db } = services;
  const id = operation.creates ? undefined : await kind.id(db, facts);
  const before = id === undefined ? null : await kind.read(db, facts.tenantId, id);
  if (takesIfMatch(operation)) checkRevision(before, request.ifMatch);

  let made = true;
  const result = await request.run(services, identity, () => {
    made = false;
  });
  const done = { ...facts, done: true, result: result as Write["result"] };
  const idAfter = await kind.id(db, done);
  const after = await kind.read(db, facts.tenantId, idAfter);
  if (made && !isDeepStrictEqual(before, after)) {
    await recordChange(services, {
      tenantId: operation.object === "namespace" ? idAfter : facts.tenantId,
      caller,
      request: request.facts,
      operation: operation.id,
      object: { kind: operation.object, id: id ?? idAfter },
      before,
      after,
    });
  }
  return { result, revision: after === null ? undefined : revisionOf(after) };
}

/** Whether there is such an object is the operation's own question: without one it answers 404. */
function checkRevision(declared: Declared | null, expected: string | undefined): void {
  if (expected === undefined || declared === null) return;
  const present = `"${revisionOf(declared)}"`;
  const tags = expected.split(",").map((tag) => tag.trim());
  if (tags.includes(present) || tags.includes("*")) return;
  throw new PreconditionError(`${IF_MATCH}: the object has changed, its revision is ${present}`, {
    ETag: present,
  });
}
