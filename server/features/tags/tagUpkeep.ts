import { setImmediate as letOthers } from "node:timers/promises";
import { readRows, type Sql, sql } from "../../db/sql/sql.ts";
import { inTransaction, retryConflicts } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";
import { isTagUsed, TAG_USES } from "./tagTables.ts";

/** Maximum number of rows that one statement reads or deletes. Other requests run between two statements. */
const BATCH = 250;

type WithDatabase = Pick<Services, "db">;

/**
 * Removes the rows of deleted tags and of their uses. Requests do not read these rows. Several instances may run this
 * function at the same time. If a run is interrupted, the next run continues the work.
 */
export async function removeDeletedTags({ db }: WithDatabase): Promise<void> {
  const execute = async (statement: Sql) => {
    const count = await retryConflicts(() => db.$executeRaw(statement));
    await letOthers();
    return count;
  };
  for (;;) {
    const tags = await readRows<{ readonly id: string }>(
      db,
      sql`SELECT "id" FROM "Tag" WHERE "tenantId" IS NULL LIMIT ${BATCH}`,
    );
    if (tags.length === 0) return;
    for (const { id } of tags) {
      for (const { table, owner } of TAG_USES) {
        const some = sql`SELECT ${owner} FROM ${table} WHERE "tagId" = ${id} LIMIT ${BATCH}`;
        const remove = sql`DELETE FROM ${table} WHERE "tagId" = ${id} AND ${owner} IN (${some})`;
        while ((await execute(remove)) > 0);
      }
      await execute(sql`DELETE FROM "Tag" WHERE "id" = ${id} AND "tenantId" IS NULL`);
    }
  }
}

/**
 * Removes the rows of tags that no object uses. The row of a tag remains when the last object with the tag is deleted
 * or gets different tags.
 */
export async function removeUnusedTags(services: WithDatabase): Promise<void> {
  for (let last = ""; ; ) {
    const page = await readRows<{ readonly id: string; readonly used: boolean | number }>(
      services.db,
      sql`SELECT "id", (${isTagUsed}) AS used FROM (
        SELECT "id" FROM "Tag" WHERE "id" > ${last} ORDER BY "id" LIMIT ${BATCH}
      ) AS "Tag" ORDER BY "id"`,
    );
    const unused = page.filter(({ used }) => !used).map(({ id }) => id);
    // The transaction is serializable. With a weaker isolation level, a device that receives the tag at the same time
    // would lose it.
    if (unused.length > 0)
      await inTransaction(services, (tx) =>
        tx.$executeRaw(sql`DELETE FROM "Tag" WHERE "id" IN (${sql.list(unused)}) AND NOT (${isTagUsed})`),
      );
    last = page.at(-1)?.id ?? "";
    if (page.length < BATCH) return;
    await letOthers();
  }
}
