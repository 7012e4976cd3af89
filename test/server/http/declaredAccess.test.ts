import { type Operation, operations } from "@gatehouse-access/sdk/contract";
import { expect, test } from "vitest";
import { buildApp } from "../../../server/app.ts";
import { ForbiddenError } from "../../../server/errors.ts";
import { authorize } from "../../../server/http/access/authorize.ts";
import type { Caller } from "../../../server/http/access/identity.ts";
import type { SqlServices } from "../../../server/services.ts";
import { startApp } from "./testApp.ts";

const build = async () => {
  const { services, gateway, stop } = await startApp();
  return { app: await buildApp(services, gateway), stop };
};

test("a route without declared access keeps the server from starting", async () => {
  const { app, stop } = await build();
  expect(() => app.get("/forgotten", async () => "secret")).toThrow(/GET \/forgotten has no declared access/);
  await app.close();
  await stop();
});

test("a plugin's route with an empty reason keeps the server from starting", async () => {
  const { app, stop } = await build();
  app.register(async (plugin) => {
    plugin.get("/forgotten", { config: { publicBecause: "" } }, async () => "secret");
  });
  await expect(app.ready()).rejects.toThrow(/has no declared access/);
  await stop();
});

test("a route with a reason for public access starts", async () => {
  const { app, stop } = await build();
  app.get("/open", { config: { publicBecause: "a test" } }, async () => ({ open: true }));
  await app.ready();
  await app.close();
  await stop();
});

const TENANT = "3dd0d1f8-8246-4519-b11a-a3dd33717f65";
/** Checks a caller's access to an operation that is not part of the contract. Reads no database. */
const authorized = (operation: Operation, caller: Caller) =>
  authorize({} as SqlServices, operation, caller, TENANT, undefined);

test("rejects the owner's key for a namespace operation without a minimum role", async () => {
  const key: Caller = { kind: "apikey", name: "key", tenant: TENANT, role: "owner" };
  expect(await authorized(operations.getDevices, key)).toEqual({
    caller: key,
    tenant: TENANT,
    role: "owner",
  });
  const withoutRole: Operation = { ...operations.getDevices, minRole: null };
  await expect(authorized(withoutRole, key)).rejects.toThrow(ForbiddenError);
});

test.each(["namespace", "path"] as const)(
  "an operation with the scope %s rejects a device, even if it accepts device tokens",
  async (scope) => {
    const uid = "a".repeat(64);
    const device: Caller = { kind: "device", tenant: TENANT, uid, proven: true, expired: false };
    const operation: Operation = { ...operations.getDevices, auth: ["device"], scope };
    await expect(authorized(operation, device)).rejects.toThrow(ForbiddenError);
  },
);
