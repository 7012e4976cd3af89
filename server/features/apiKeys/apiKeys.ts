import { randomUUID } from "node:crypto";
import { apiKeys, type PublicOperations, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { DAY, SECOND } from "@gatehouse-access/sdk/times";
import { LRUCache } from "lru-cache";
import { declaredColumn, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { createOnce, deletion } from "../../changes/writeObject.ts";
import type { ApiKey } from "../../db/generated/sqlite/client.ts";
import { findRow, insertRows, updateRow } from "../../db/sql/rows.ts";
import { ConflictError, ForbiddenError, isTaken } from "../../errors.ts";
import { actorIdOf } from "../../http/access/identity.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { readPage } from "../../lists/page.ts";
import { digestOf } from "../../secrets/digest.ts";
import { presenter } from "../fields.ts";

const { apiKey } = apiKeys;
const declared = apiKey.pick({ name: true, role: true, expires_in: true });

const declaredApiKey = presenter<ApiKey, typeof declared>(declared, {});

export const apiKeyObject: ManagedObject<ApiKey> = {
  missing: "no such API key",
  // The name identifies a key. After a rename, only the new name identifies the key.
  id: (_, { params, body, result, done }) => String((done && body.name) || params.key || result?.name),
  find: (tx, tenantId, name) => findRow(tx, "ApiKey", { tenantId, name }),
  declared: declaredApiKey,
  declare: (tx, tenantId, name, declaredBy) => updateRow(tx, "ApiKey", { tenantId, name }, { declaredBy }),
};

/**
 * Converts an API key to its wire format. The secret is not stored, so the result does not contain it (models section
 * 6).
 */
export const presentApiKey = presenter<ApiKey, typeof apiKey>(apiKey, {
  revision: (row) => revisionOf(declaredApiKey(row)),
});

const YEAR = 365;

/**
 * Returns the expiry time of an API key with a lifetime of `days`, as Unix time in seconds. A lifetime of 365 days ends
 * on the same date of the next year. With a lifetime of -1, the key never expires (rules 15.2), and the result is -1.
 */
export function expiryOf(days: number, now: Date): number {
  if (days < 0) return -1;
  if (days !== YEAR) return Math.floor((now.getTime() + days * DAY) / SECOND);
  const end = new Date(now);
  end.setUTCFullYear(end.getUTCFullYear() + 1);
  return Math.floor(end.getTime() / SECOND);
}

/**
 * Checks that a new key does not have a higher role than its creator (rules section 15.3). An owner can create keys
 * with the role `owner` (D25).
 */
function checkRole(own: Role, requested: Role): void {
  if (!roleAtLeast(own, requested))
    throw new ForbiddenError(`role: ${requested} is higher than the caller's role`);
}

/**
 * The creation time of the latest key in each namespace, in milliseconds since 1970. Contains only keys that this
 * process created.
 */
const lastCreated = new LRUCache<string, number>({ max: 10_000 });
/** Maximum time by which a creation time may be ahead of the clock, in milliseconds. */
const AHEAD = 1000;

/**
 * Returns the creation time of a new key. It differs from the creation times of all other keys that this process
 * created in the namespace, even if they were created in the same millisecond. Clients distinguish keys by creation
 * time and creator, because names can change.
 */
function timeOfCreation(tenantId: string, now: number): Date {
  const last = lastCreated.get(tenantId) ?? 0;
  const time = last >= now && last - now < AHEAD ? last + 1 : now;
  lastCreated.set(tenantId, time);
  return new Date(time);
}

/**
 * Creates an API key. A retry with the same Idempotency-Key and the same secret returns the existing key. A retry with
 * a different secret is rejected, because a client may already use the first secret.
 */
export const createApiKey: ObjectWrite<PublicOperations["createApiKey"], ApiKey> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const { tenant: tenantId, caller } = identity;
  const role = body.role || identity.role;
  checkRole(identity.role, role);
  const secret = body.key || randomUUID();
  const digest = digestOf(secret);
  const now = services.now();
  const row = await createOnce(context, {
    taken: "name or key: is already used",
    find: async (tx, key) => {
      const known = await findRow(tx, "ApiKey", { tenantId, creationKey: key });
      if (known === null || known.digest === digest) return known;
      throw new ConflictError(
        `this Idempotency-Key already created the API key ${known.name} with a different secret; send a new Idempotency-Key`,
      );
    },
    create: async (tx) => {
      const createdAt = timeOfCreation(tenantId, now.getTime());
      const created = {
        digest,
        tenantId,
        name: body.name,
        role,
        createdBy: actorIdOf(caller),
        expiresIn: BigInt(expiryOf(body.expires_at, now)),
        createdAt,
        updatedAt: createdAt,
        creationKey,
        declaredBy: declaredColumn(declaration, now),
      };
      return (await insertRows(tx, "ApiKey", [created])) ? created : null;
    },
  });
  context.became(row);
  return { id: secret, ...presentApiKey(row), user_id: row.createdBy };
};

export const listApiKeys: Handler<PublicOperations["listApiKeys"]> = async (context) => {
  const { services, identity, query } = context;
  const order = query.order_by ?? "desc";
  // An unknown sort field selects the default order (rules section 6).
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
  const rows = await readPage(context, services.db.apiKey, {
    where: { tenantId: identity.tenant },
    orderBy: [sort[by], { name: order }],
  });
  return rows.map(presentApiKey);
};

export const updateApiKey: ObjectWrite<PublicOperations["updateApiKey"], ApiKey> = async (context) => {
  const { services, identity, body, found, became } = context;
  if (body.role) checkRole(identity.role, body.role);
  const stored = found();
  const { digest, name, role } = stored;
  const changed = { name: body.name || name, role: body.role || role, updatedAt: services.now() };
  await updateRow(services.db, "ApiKey", { digest }, changed).catch((error: unknown) => {
    throw isTaken(error)
      ? new ConflictError("name: another API key has this name; choose a different name")
      : error;
  });
  became({ ...stored, ...changed });
  return undefined;
};

/**
 * Deletes an API key. The key stops working immediately, because the service looks up the key for each request (rules
 * section 15.7).
 */
export const deleteApiKey = deletion("ApiKey", ["digest"]);
