import { expect, test } from "vitest";
import { readRows, readWireRows, sql } from "../../../server/db/sql/sql.ts";
import { testDatabase } from "./database.ts";
import { user } from "./rows.ts";

test("returns the values of the client's raw query: null, text, numbers, booleans, times, 64-bit integers", async () => {
  const { client } = await testDatabase();
  const ann = { ...user("ann"), emailMarketing: true, mfaLastStep: 7, lastLogin: null };
  await client.user.create({ data: ann });
  await client.rateLimit.create({ data: { key: "login", count: 3, endsAt: 2n ** 40n } });

  const users = sql`SELECT * FROM "User" WHERE "id" = ${"ann"} AND "emailMarketing" = ${true}`;
  const rows = await readRows(client, users);
  expect(rows).toEqual(await client.$queryRaw(users));
  expect(rows).toMatchObject([ann]);

  const counted = sql`SELECT "endsAt", (SELECT COUNT(*) FROM "User") AS users FROM "RateLimit" WHERE "count" > ${2}`;
  const limits = await readRows<{ endsAt: bigint }>(client, counted);
  expect(limits).toEqual(await client.$queryRaw(counted));
  expect(limits[0]?.endsAt).toBe(2n ** 40n);

  const since = sql`SELECT "id" FROM "User" WHERE "createdAt" = ${ann.createdAt}`;
  expect(await readRows(client, since)).toEqual([{ id: "ann" }]);
});

test("reads uncommitted rows inside the transaction, and none after its rollback", async () => {
  const { client } = await testDatabase();
  const names = sql`SELECT "username" FROM "User"`;
  const undone = client.$transaction(async (tx) => {
    await tx.user.create({ data: user("ann") });
    expect(await readRows(tx, names)).toEqual([{ username: "ann" }]);
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  expect(await readRows(client, names)).toEqual([]);
});

test("returns times in the wire format on request, inside a transaction too", async () => {
  const { client } = await testDatabase();
  const times = ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.600Z", "2026-01-02T03:04:05.000Z"];
  for (const [n, time] of times.entries()) {
    await client.user.create({ data: { ...user(`user-${n}`), createdAt: new Date(time) } });
  }
  const query = sql`SELECT "createdAt", "lastLogin", "emailMarketing" FROM "User" ORDER BY "id"`;
  const expected = times.map((createdAt) => ({ createdAt, lastLogin: null, emailMarketing: false }));
  expect(await readWireRows(client, query)).toEqual(expected);
  await client.$transaction(async (tx) => {
    expect(await readWireRows(tx, query)).toEqual(expected);
  });
});

test("passes values as parameters, never as part of the statement", async () => {
  const { client } = await testDatabase();
  await client.user.create({ data: user("ann") });
  const named = (name: string) => readRows(client, sql`SELECT "id" FROM "User" WHERE "username" = ${name}`);
  expect(await named("' OR 1 = 1 --")).toEqual([]);
  expect(await named("ann")).toEqual([{ id: "ann" }]);
});

test("rejects if the database rejects the statement", async () => {
  const { client } = await testDatabase();
  await expect(readRows(client, sql`SELECT * FROM "Nothing"`)).rejects.toThrow();
});
