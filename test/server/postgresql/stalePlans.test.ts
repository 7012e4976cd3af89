import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { readRows, readWireRows, sql } from "../../../server/db/sql/sql.ts";
import { inSqlTransaction, inTransaction } from "../../../server/db/sql/transaction.ts";
import { newDatabase, query } from "./clients.ts";

/** Opens a database with one connection, so that every statement uses the connection that prepared it. */
async function open() {
  const url = await newDatabase();
  const { client: db, close } = await openDatabase({ url, connections: 1 });
  onTestFinished(close);
  return { db, addColumn: () => query(url, 'ALTER TABLE "User" ADD COLUMN "added" TEXT') };
}

type Db = Awaited<ReturnType<typeof open>>["db"];

const users = sql`SELECT * FROM "User" WHERE "id" = ${"ana"}`;
const change = sql`UPDATE "User" SET "name" = ${"Ana"} WHERE "id" = ${"ana"} RETURNING *`;

test.each<[string, (db: Db) => Promise<unknown>]>([
  ["a query", (db) => readRows(db, users)],
  ["a query of a response", (db) => readWireRows(db, users)],
  ["a query of Prisma's client", (db) => db.$queryRaw(users)],
  ["a statement of Prisma's client", (db) => db.$executeRaw(change)],
  ["a transaction", (db) => inTransaction({ db }, (tx) => tx.$queryRaw(users))],
  ["a transaction of SQL", (db) => inSqlTransaction({ db }, "lane", (tx) => tx.$queryRaw(users))],
])("%s succeeds after another process has added a column", async (_, run) => {
  const { db, addColumn } = await open();
  const before = await run(db);
  await addColumn();
  expect(await run(db)).toEqual(before);
});
