import { expect, test } from "vitest";
import { testDatabase } from "./database.ts";
import { user } from "./rows.ts";

test("an acknowledged write outlives the rollback of another request's transaction", async () => {
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
  // Prisma begins a statement when it is waited for, hence `then`.
  const write = client.user.create({ data: user("acknowledged") }).then((written) => written.id);
  const read = client.user.findMany().then((users) => users.map((found) => found.id));
  // By now they are done, where nothing is in their way: the same on another database is.
  await other.client.user.create({ data: user("elsewhere") });
  await other.client.user.findMany();
  mayFail.resolve();
  await expect(failing).rejects.toThrow("refused");
  expect(await write).toBe("acknowledged");
  expect((await client.user.findMany()).map((found) => found.id)).toEqual(["acknowledged"]);
  // Nobody sees what was never committed.
  expect(await read).not.toContain("rolledback");
});

test("a statement that fails inside of a batch undoes the batch and nothing else", async () => {
  const { client } = await testDatabase();
  await client.user.create({ data: user("ann") });
  const batch = [client.user.create({ data: user("bob") }), client.user.create({ data: user("ann") })];
  await expect(client.$transaction(batch)).rejects.toMatchObject({ code: "P2002" });
  expect((await client.user.findMany()).map((found) => found.id)).toEqual(["ann"]);
});

test("a transaction that takes too long is undone, and the database goes on", async () => {
  const { client } = await testDatabase();
  const slow = client.$transaction(
    async (transaction) => {
      // Until one is refused.
      for (let n = 0; ; n += 1) {
        await transaction.user.create({ data: user(`slow-${n}`) });
        // SQLite needs no turn of the event loop; the clock does.
        await new Promise(setImmediate);
      }
    },
    { timeout: 100 },
  );
  await expect(slow).rejects.toMatchObject({ code: "P2028" });
  await client.user.create({ data: user("ann") });
  expect((await client.user.findMany()).map((found) => found.id)).toEqual(["ann"]);
});
