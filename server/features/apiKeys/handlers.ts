import { randomUUID } from "node:crypto";
import { type apiKeys, type PublicOperations, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { LRUCache } from "lru-cache";
import { createOnce } from "../../changes/createOnce.ts";
import { declaredColumn } from "../../changes/managedObject.ts";
import type { ApiKey } from "../../db/generated/sqlite/client.ts";
import { deleteRows, findRow, insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit } from "../../db/sql/sql.ts";
import { ConflictError, ForbiddenError, isTaken, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers, ObjectWrite } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import { digestOf } from "../../secrets/digest.ts";
import { declaredApiKey, presentApiKey } from "./apiKey.ts";

const DAY = 24 * 60 * 60;
const YEAR = 365;

/** Unix second at which a key made for this many days expires: 365 is a calendar year, -1 never (rules 15.2). */
export function expiryOf(days: number, now: Date): number {
  if (days < 0) return -1;
  if (days !== YEAR) return Math.floor(now.getTime() / 1000) + days * DAY;
  const end = new Date(now);
  end.setUTCFullYear(end.getUTCFullYear() + 1);
  return Math.floor(end.getTime() / 1000);
}

/** A key can do no more than its creator (rules section 15.3); an owner may make a key with the role owner (D25). */
function checkRole(own: Role, asked: Role): void {
  if (!roleAtLeast(own, asked)) throw new ForbiddenError(`role: ${asked} is above the caller's`);
}

/** When the last key of each namespace was made here, in milliseconds since 1970. */
const lastMade = new LRUCache<string, number>({ max: 10_000 });
/** How far times of creation may run ahead of the clock, in milliseconds. */
const AHEAD = 1000;

/**
 * The time of creation of a new key. No other key of the namespace that was made here has it: names change, so that
 * clients tell keys apart by their time and their maker, and many are made in one millisecond.
 */
function timeOfCreation(tenantId: string, now: number): Date {
  const last = lastMade.get(tenantId) ?? 0;
  const time = last >= now && last - now < AHEAD ? last + 1 : now;
  lastMade.set(tenantId, time);
  return new Date(time);
}

/**
 * A retry with the same Idempotency-Key gets the key that was made, if it sends that key's secret. With another secret
 * it is refused, since the holder of the first secret may be using the key.
 */
const createApiKey: ObjectWrite<PublicOperations["createApiKey"]> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const { tenant: tenantId, caller } = identity;
  const role = body.role || identity.role;
  checkRole(identity.role, role);
  const secret = body.key || randomUUID();
  const digest = digestOf(secret);
  const now = services.now();
  const row = await createOnce(context, {
    taken: "name or key: is used already",
    find: async (tx, made) => {
      const known = await findRow(tx, "ApiKey", { tenantId, creationKey: made });
      if (known === null || known.digest === digest) return known;
      throw new ConflictError(`Idempotency-Key: made the API key ${known.name}, which has another secret`);
    },
    create: async (tx) => {
      const createdAt = timeOfCreation(tenantId, now.getTime());
      const created = {
        digest,
        tenantId,
        name: body.name,
        role,
        createdBy: caller.userId,
        expiresIn: BigInt(expiryOf(body.expires_at, now)),
        createdAt,
        updatedAt: createdAt,
        creationKey,
        declaredBy: declaredColumn(declaration, now),
      };
      return (await insertRows(tx, "ApiKey", [created])) ? created : null;
    },
  });
  context.became(declaredApiKey(row));
  return { id: secret, ...presentApiKey(row), user_id: row.createdBy };
};

const listApiKeys: Handler<PublicOperations["listApiKeys"]> = async (context) => {
  const { services, identity, query, header } = context;
  const where = { tenantId: identity.tenant };
  const order = query.order_by ?? "desc";
  // An unknown field means the default order (rules section 6).
  const sort = {
    name: { name: order },
    role: { role: order },
    created_by: { createdBy: order },
    created_at: { createdAt: order },
    updated_at: { updatedAt: order },
    expires_in: { expiresIn: order },
  } as const;
  const by =
    query.sort_by && Object.hasOwn(sort, query.sort_by) ? (query.sort_by as keyof typeof sort) : "expires_in";
  const [total, rows] = await Promise.all([
    services.db.apiKey.count({ where }),
    services.db.apiKey.findMany({
      where,
      orderBy: [sort[by], { name: order }],
      ...pageOf(query),
    }),
  ]);
  header("X-Total-Count", total);
  return rows.map(presentApiKey);
};

const updateApiKey: ObjectWrite<PublicOperations["updateApiKey"], ApiKey> = async (context) => {
  const { services, identity, body, found, became } = context;
  if (body.role) checkRole(identity.role, body.role);
  if (found === null) throw new NotFoundError("no such API key");
  const { digest } = found;
  const changed = { name: body.name || found.name, role: body.role || found.role, updatedAt: services.now() };
  await updateRow(services.db, "ApiKey", { digest }, changed).catch((error: unknown) => {
    throw isTaken(error) ? new ConflictError("name: is used by another key") : error;
  });
  became(declaredApiKey({ ...found, ...changed }));
  return undefined;
};

/** Keys are looked up with every request, so a deleted key stops working at once (rules section 15.7). */
const deleteApiKey: ObjectWrite<PublicOperations["deleteApiKey"], ApiKey> = async ({
  services: { db },
  found,
  became,
}) => {
  if (found === null) throw new NotFoundError("no such API key");
  await leaveToCommit(db, deleteRows(db, "ApiKey", { digest: found.digest }));
  became(null);
  return undefined;
};

export const apiKeyHandlers: Handlers<Pick<PublicOperations, keyof typeof apiKeys & keyof PublicOperations>> =
  {
    createApiKey,
    listApiKeys,
    updateApiKey,
    deleteApiKey,
  };
