import { expect, test } from "vitest";
import { testDatabase } from "../db/database.ts";
import { user } from "../db/rows.ts";

/** A promise with the means to fulfil it. */
function signal() {
  let resolve = () => {};
  const promise = new Promise<void>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}

test("a committed transaction is there as a whole, and no other one comes between", async () => {
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
  const [begun, mayEnd] = [signal(), signal()];
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
