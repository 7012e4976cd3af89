import { expect, test } from "vitest";
import { testDatabase } from "../db/database.ts";
import { user } from "../db/rows.ts";

test("a committed transaction is complete, and no other transaction runs in between", async () => {
  const { client } = await testDatabase();
  await client.user.create({ data: { ...user("counter"), maxNamespaces: 0 } });
  await Promise.all(
    Array.from({ length: 50 }, () =>
      client.$transaction(
        async (transaction) => {
          const { maxNamespaces } = await transaction.user.findUniqueOrThrow({ where: { id: "counter" } });
          await transaction.user.update({
            where: { id: "counter" },
            data: { maxNamespaces: maxNamespaces + 1 },
          });
        },
        { maxWait: 30_000, timeout: 30_000 },
      ),
    ),
  );
  expect(await client.user.findUnique({ where: { id: "counter" } })).toMatchObject({ maxNamespaces: 50 });
});

test("a transaction that waited too long for its turn leaves nothing open", async () => {
  const { client } = await testDatabase();
  const [begun, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = client.$transaction(
    async (transaction) => {
      await transaction.user.create({ data: user("first") });
      begun.resolve();
      await mayEnd.promise;
    },
    { timeout: 10_000 },
  );
  await Promise.race([begun.promise, first]);
  const impatient = client.$transaction(async (transaction) => transaction.user.count(), { maxWait: 50 });
  await expect(impatient).rejects.toMatchObject({ code: "P2028" });
  mayEnd.resolve();
  await first;
  await client.$transaction(async (transaction) => transaction.user.create({ data: user("second") }));
  expect(await client.user.count()).toBe(2);
});

test("a statement waits for the open transaction, but not for transactions that have not begun", async () => {
  const { client } = await testDatabase();
  const [begun, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const order: string[] = [];
  const first = client.$transaction(async (transaction) => {
    await transaction.user.create({ data: user("first") });
    begun.resolve();
    await mayEnd.promise;
    order.push("first");
  });
  await begun.promise;
  const later = Array.from({ length: 5 }, (_, n) =>
    client.$transaction(async (transaction) => {
      await transaction.user.create({ data: user(`later-${n}`) });
      order.push("later");
    }),
  );
  // Waits until the transactions are in the queue, and only then runs the statement.
  await new Promise((resolve) => setImmediate(resolve));
  const read = client.user.count().then((count) => order.push(`read ${count}`));
  await new Promise((resolve) => setImmediate(resolve));
  mayEnd.resolve();
  await Promise.all([first, ...later, read]);
  expect(order).toEqual(["first", "read 1", ...Array(5).fill("later")]);
});
