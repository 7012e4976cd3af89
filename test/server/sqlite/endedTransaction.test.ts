import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sqliteAdapter } from "../../../server/db/sqlite/adapter.ts";
import { openSqlite } from "../../../server/db/sqlite/open.ts";
import { testFolder } from "../../support/folder.ts";

const query = (sql: string) => ({ sql, args: [], argTypes: [] });
const insert = (note: string) => query(`INSERT INTO "Note" VALUES ('${note}')`);

async function open() {
  const sqlite = openSqlite(join(testFolder(), "test.db"));
  onTestFinished(() => void sqlite.close());
  sqlite.exec('CREATE TABLE "Note" ("note" TEXT)');
  const adapter = await sqliteAdapter(sqlite).connect();
  return { adapter, notes: () => sqlite.prepare('SELECT "note" FROM "Note"').pluck().all() };
}

test.each(["commit", "rollback"] as const)(
  "after its %s, a transaction changes nothing in the next transaction",
  async (end) => {
    const { adapter, notes } = await open();
    const ended = await adapter.startTransaction();
    await ended.executeRaw(insert("first"));
    await ended[end]();
    const next = await adapter.startTransaction();
    const closed = { cause: { kind: "TransactionAlreadyClosed" } };
    await expect(ended.executeRaw(insert("late"))).rejects.toMatchObject(closed);
    await expect(ended.queryRaw(query('SELECT * FROM "Note"'))).rejects.toMatchObject(closed);
    await expect(ended.commit()).rejects.toMatchObject(closed);
    await expect(ended.createSavepoint?.("s")).rejects.toMatchObject(closed);
    await expect(ended.rollbackToSavepoint?.("s")).rejects.toMatchObject(closed);
    await expect(ended.releaseSavepoint?.("s")).rejects.toMatchObject(closed);
    // Prisma also rolls back a transaction that may already have ended.
    await ended.rollback();
    await next.executeRaw(insert("next"));
    await next.commit();
    expect(notes()).toEqual(end === "commit" ? ["first", "next"] : ["next"]);
  },
);

test("a transaction that ends twice lets only one other transaction begin", async () => {
  const { adapter, notes } = await open();
  const first = await adapter.startTransaction();
  const second = adapter.startTransaction();
  const third = adapter.startTransaction();
  await first.rollback();
  await first.rollback();
  await (await second).executeRaw(insert("second"));
  await (await second).rollback();
  await (await third).executeRaw(insert("third"));
  await (await third).commit();
  expect(notes()).toEqual(["third"]);
});
