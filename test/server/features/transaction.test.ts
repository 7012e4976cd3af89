import { setTimeout as wait } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { inTransaction } from "../../../server/db/sql/transaction.ts";
import { withApp } from "../http/appOfTest.ts";

let tenantId: string;
const app = withApp();
beforeEach(async () => {
  tenantId = (await app.user("ana", "lab")).tenant;
});

const limit = async () =>
  (await app.services.db.namespace.findUniqueOrThrow({ where: { tenantId } })).maxDevices;

test("preserves checked values until the transaction writes", async () => {
  const add = () =>
    inTransaction(app.services, async (tx) => {
      const { maxDevices } = await tx.namespace.findUniqueOrThrow({ where: { tenantId } });
      // Waits between the read and the write, so that the transactions overlap.
      await wait(10);
      await tx.namespace.update({ where: { tenantId }, data: { maxDevices: maxDevices + 1 } });
    });
  await Promise.all([add(), add(), add(), add()]);
  expect(await limit()).toBe(-1 + 4);
});

test("rolls back a failed transaction", async () => {
  const failing = inTransaction(app.services, async (tx) => {
    await tx.namespace.update({ where: { tenantId }, data: { maxDevices: 7 } });
    throw new Error("rolled back");
  });
  await expect(failing).rejects.toThrow("rolled back");
  expect(await limit()).toBe(-1);
});
