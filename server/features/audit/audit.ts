import { audit, type Operations, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import { DAY } from "@gatehouse-access/sdk/times";
import type { z } from "zod";
import type { AuditEntry } from "../../db/generated/sqlite/client.ts";
import { readRows, sql } from "../../db/sql/sql.ts";
import { ownerOf } from "../../http/access/identity.ts";
import type { Handler } from "../../http/handler.ts";
import { inPieces } from "../../http/limits/pieces.ts";
import { pageOf } from "../../lists/page.ts";
import type { Services } from "../../services.ts";
import { presenter } from "../fields.ts";

/** The wire format of an audit trail entry. */
export type WireEntry = z.output<typeof audit.auditEntry>;

const { auditEntry } = audit;
const json = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** Converts an audit trail entry to its wire format. */
export const presentAuditEntry = presenter<AuditEntry, typeof auditEntry>(auditEntry, {
  actor: (row) => ({
    kind: row.actorKind as WireEntry["actor"]["kind"],
    id: row.actorId,
    name: row.actorName,
  }),
  object: (row) => ({ kind: row.objectKind, id: row.objectId }),
  before: (row) => json(row.before),
  after: (row) => json(row.after),
});

export const getAuditTrail: Handler<Operations["getAuditTrail"]> = async (context) => {
  const { services, identity, query, header } = context;
  const { tenant } = identity;
  const where = {
    // The condition is a range that contains a single value. With `=` instead, PostgreSQL may scan the primary key
    // backwards and read the latest entries of all namespaces.
    tenantId: { gte: tenant, lte: tenant },
    ...((query.since || query.until) && {
      at: {
        ...(query.since && { gte: new Date(query.since) }),
        ...(query.until && { lt: new Date(query.until) }),
      },
    }),
    ...(query.kind && { objectKind: query.kind }),
    ...(query.object && { objectId: query.object }),
  };
  const [total, page] = await Promise.all([
    services.db.auditEntry.count({ where }),
    services.db.auditEntry.findMany({
      where,
      select: { id: true },
      orderBy: [{ tenantId: "desc" }, { id: "desc" }],
      ...pageOf(query),
    }),
  ]);
  header(TOTAL_COUNT, total);
  const sizes = await sizesOf(
    services,
    page.map(({ id }) => id),
  );
  return inPieces(page, { owner: ownerOf(identity), sizeOf: ({ id }) => sizes.get(id) ?? 0 }, (group) =>
    readEntries(
      services,
      group.map(({ id }) => id),
    ),
  );
};

/** Returns the stored sizes of entries in bytes, by id. The database finds the sizes without reading the content. */
async function sizesOf(services: Services, ids: readonly number[]): Promise<Map<number, number>> {
  if (ids.length === 0) return new Map();
  const rows = await readRows<{ id: number; size: number | bigint }>(
    services.db,
    sql`SELECT "id", COALESCE(OCTET_LENGTH("before"), 0) + COALESCE(OCTET_LENGTH("after"), 0) AS "size"
      FROM "AuditEntry" WHERE "id" IN (${sql.list(ids)})`,
  );
  return new Map(rows.map(({ id, size }) => [id, Number(size)]));
}

/** Reads entries, sorted by id in descending order. */
async function readEntries(services: Services, ids: readonly number[]): Promise<WireEntry[]> {
  const rows = await services.db.auditEntry.findMany({
    where: { id: { in: [...ids] } },
    orderBy: { id: "desc" },
  });
  return rows.map(presentAuditEntry);
}

/** Deletes the audit trail entries that are older than the configured retention. */
export async function trimAuditTrail(services: Services): Promise<void> {
  const days = services.settings.auditRetention;
  if (days === 0) return;
  await services.db.auditEntry.deleteMany({
    where: { at: { lt: new Date(services.now().getTime() - days * DAY) } },
  });
}
