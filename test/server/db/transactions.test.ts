import { setTimeout as wait } from "node:timers/promises";
import { expect, test } from "vitest";
import { inTransaction } from "../../../server/db/sql/transaction.ts";
import { testDatabase } from "./database.ts";
import { user } from "./rows.ts";

test("keeps an acknowledged write after the rollback of another request's transaction", async () => {
  const { client } = await testDatabase();
  const other = await testDatabase();
  const [begun, mayFail] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const failing = client.$transaction(async (transaction) => {
    await transaction.user.create({ data: user("rolledback") });
    begun.resolve();
    await mayFail.promise;
    throw new Error("refused");
  });
  await Promise.race([begun.promise, failing]);
  // Prisma sends a query only when its promise is awaited or `then` is called. The test calls `then`, because it must
  // not wait for the result yet.
  const write = client.user.create({ data: user("acknowledged") }).then((written) => written.id);
  const read = client.user.findMany().then((users) => users.map((found) => found.id));
  // These statements run on another database, and take as long as the two statements above. When they have ended, the
  // statements above have ended too, unless the open transaction blocks them.
  await other.client.user.create({ data: user("elsewhere") });
  await other.client.user.findMany();
  mayFail.resolve();
  await expect(failing).rejects.toThrow("refused");
  expect(await write).toBe("acknowledged");
  expect((await client.user.findMany()).map((found) => found.id)).toEqual(["acknowledged"]);
  // Other requests never read uncommitted rows.
  expect(await read).not.toContain("rolledback");
});

test("undoes only the batch when a statement in it fails", async () => {
  const { client } = await testDatabase();
  await client.user.create({ data: user("ann") });
  const batch = [client.user.create({ data: user("bob") }), client.user.create({ data: user("ann") })];
  await expect(client.$transaction(batch)).rejects.toMatchObject({ code: "P2002" });
  expect((await client.user.findMany()).map((found) => found.id)).toEqual(["ann"]);
});

test("undoes a transaction that exceeds its timeout, and keeps the database usable", async () => {
  const { client } = await testDatabase();
  const slow = client.$transaction(
    async (transaction) => {
      // The loop has no end condition. It stops when the database rejects a statement, because the transaction has
      // timed out.
      for (let n = 0; ; n += 1) {
        await transaction.user.create({ data: user(`slow-${n}`) });
        // SQLite calls block the event loop. Without this wait, the timer of the transaction's timeout would never run.
        await new Promise(setImmediate);
      }
    },
    { timeout: 100 },
  );
  await expect(slow).rejects.toMatchObject({ code: "P2028" });
  await client.user.create({ data: user("ann") });
  expect((await client.user.findMany()).map((found) => found.id)).toEqual(["ann"]);
});

test("keeps the values that a transaction has checked until it writes", async () => {
  const { client: db } = await testDatabase();
  await db.user.create({ data: user("ann") });
  const lookup = { where: { id: "ann" } };
  const add = () =>
    inTransaction({ db }, async (tx) => {
      const { maxNamespaces } = await tx.user.findUniqueOrThrow(lookup);
      // Waits between the read and the write, so that the transactions overlap.
      await wait(10);
      await tx.user.update({ ...lookup, data: { maxNamespaces: maxNamespaces + 1 } });
    });
  const { maxNamespaces: before } = await db.user.findUniqueOrThrow(lookup);
  await Promise.all([add(), add(), add(), add()]);
  expect((await db.user.findUniqueOrThrow(lookup)).maxNamespaces).toBe(before + 4);
});
