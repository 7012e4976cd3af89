import fc from "fast-check";
import { expect, test } from "vitest";
import { deleteRows, findRow, insertRows, updateRow } from "../../../server/db/sql/rows.ts";
import { leaveToCommit, readRows, type SqlClient, sql } from "../../../server/db/sql/sql.ts";
import { inSqlTransaction } from "../../../server/db/sql/transaction.ts";
import { testDatabase } from "./database.ts";
import { user } from "./rows.ts";

const LANE = "lane";

const names = async (db: SqlClient) =>
  (await readRows<{ id: string }>(db, sql`SELECT "id" FROM "User" ORDER BY "id"`)).map(({ id }) => id);

/** Returns a transaction callback that adds a user, and then throws an error if `fails` is set. */
const adding = (name: string, fails: boolean) => async (tx: SqlClient) => {
  await insertRows(tx, "User", [user(name)]);
  if (fails) throw new Error(`work for ${name} failed`);
  return name;
};

test("undoes only the failed work of a concurrent batch, and reports each result to its caller", async () => {
  const { client: db } = await testDatabase();
  const jobs = fc.array(fc.boolean(), { minLength: 1, maxLength: 150 });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(jobs, async (fails) => {
      await db.$executeRaw(sql`DELETE FROM "User"`);
      run += 1;
      const name = (index: number) => `user-${run}-${index}`;
      const outcomes = await Promise.allSettled(
        fails.map((fail, index) => inSqlTransaction({ db }, LANE, adding(name(index), fail))),
      );
      expect(outcomes.map(({ status }) => status)).toEqual(
        fails.map((fail) => (fail ? "rejected" : "fulfilled")),
      );
      const kept = fails.flatMap((fail, index) => (fail ? [] : name(index)));
      expect(await names(db)).toEqual(kept.sort());
    }),
    { numRuns: 10 },
  );
});

test("keeps the values that a transaction has read unchanged until the transaction writes", async () => {
  const { client: db } = await testDatabase();
  const id = "counter";
  await insertRows(db, "User", [{ ...user(id), maxNamespaces: 0 }]);
  const add = () =>
    inSqlTransaction({ db }, LANE, async (tx) => {
      const found = await findRow(tx, "User", { id });
      await updateRow(tx, "User", { id }, { maxNamespaces: (found?.maxNamespaces ?? 0) + 1 });
    });
  await Promise.all(Array.from({ length: 20 }, add));
  expect(await findRow(db, "User", { id })).toMatchObject({ maxNamespaces: 20 });
});

test("retries conflicting work of several lanes until all of it succeeds, including statements left to the commit", async () => {
  const { client: db } = await testDatabase();
  const id = "counter";
  await insertRows(db, "User", [{ ...user(id), maxNamespaces: 0 }]);
  const add = (lane: string) =>
    inSqlTransaction({ db }, lane, async (tx) => {
      const found = await findRow(tx, "User", { id });
      const changes = { maxNamespaces: (found?.maxNamespaces ?? 0) + 1 };
      await leaveToCommit(tx, updateRow(tx, "User", { id }, changes));
      // `leaveToCommit` reports a failure of the update only at the commit. The update may therefore already have
      // failed before this query.
      await names(tx);
    });
  const lanes = Array.from({ length: 12 }, (_, index) => `lane-${index}`);
  await Promise.all(lanes.map(add));
  expect(await findRow(db, "User", { id })).toMatchObject({ maxNamespaces: lanes.length });
});

test("a rejected statement undoes only its own work", async () => {
  const { client: db } = await testDatabase();
  const broken = (tx: SqlClient) => tx.$executeRaw(sql`UPDATE "Nowhere" SET "id" = 1`);
  const outcomes = await Promise.allSettled([
    inSqlTransaction({ db }, LANE, adding("ann", false)),
    inSqlTransaction({ db }, LANE, async (tx) => {
      await adding("bob", false)(tx);
      await broken(tx);
    }),
    inSqlTransaction({ db }, LANE, adding("cyd", false)),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await names(db)).toEqual(["ann", "cyd"]);
});

test("finds, inserts, updates and deletes rows as Prisma's client does", async () => {
  const { client: db } = await testDatabase();
  const row = { ...user("ann"), emailMarketing: true, mfaLastStep: 7, lastLogin: null };
  expect(await insertRows(db, "User", [row])).toBe(true);
  const found = await db.user.findUniqueOrThrow({ where: { id: "ann" } });
  expect(found).toMatchObject(row);
  expect(await findRow(db, "User", { id: "ann" })).toEqual(found);
  expect(await insertRows(db, "User", [{ ...user("ben"), email: row.email }])).toBe(false);
  const changes = { emailMarketing: false, lastLogin: new Date("2026-05-06T07:08:09.012Z") };
  expect(await updateRow(db, "User", { id: "ann" }, changes)).toBe(true);
  expect(await db.user.findUniqueOrThrow({ where: { id: "ann" } })).toEqual({ ...found, ...changes });
  expect(await updateRow(db, "User", { id: "missing" }, changes)).toBe(false);
  expect(await deleteRows(db, "User", { id: "ann" })).toBe(true);
  expect(await deleteRows(db, "User", { id: "ann" })).toBe(false);
  expect(await findRow(db, "User", { id: "ann" })).toBeNull();
});
