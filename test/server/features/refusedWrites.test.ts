import { publicOperations } from "@gatehouse-access/sdk/contract";
import { expect, test } from "vitest";
import type { ManagedObject } from "../../../server/changes/managedObject.ts";
import { writeObject } from "../../../server/changes/writeObject.ts";
import { findRow } from "../../../server/db/sql/rows.ts";
import { ForbiddenError, NotFoundError } from "../../../server/errors.ts";
import { objects as kinds } from "../../../server/features/objects.ts";
import type { ObjectRequest } from "../../../server/http/handler.ts";
import { withApp } from "../http/appOfTest.ts";

const app = withApp();

/** A request to update a firewall rule. It is refused, because `identify` rejects with a ForbiddenError. */
function refused(tenant: string): ObjectRequest {
  return {
    operation: { ...publicOperations.updateFirewallRule, object: "firewallRule" },
    sender: { caller: { kind: "apikey", name: "test", tenant, role: "owner" }, tenant, role: "owner" },
    params: { id: "1" },
    body: {},
    ifMatch: undefined,
    isGuarded: false,
    creationKey: null,
    declaration: null,
    facts: { id: "", address: "" },
    identify: () => Promise.reject(new ForbiddenError("may not")),
    run: () => Promise.reject(new Error("unexpected run")),
  };
}

const withFind = (find: ManagedObject["find"]) => ({
  ...kinds,
  firewallRule: { missing: "no such rule", id: () => "1", find, declared: () => ({}) },
});

test("sends nothing after the end of a refused change", async () => {
  const { tenant } = await app.user("ana", "lab");
  let reads = 0;
  const objects = withFind(async (tx, tenantId) => {
    for (; reads < 5; reads += 1) await findRow(tx, "Namespace", { tenantId });
    return null;
  });
  await expect(writeObject(objects, app.services, refused(tenant))).rejects.toThrow("may not");
  expect(reads).toBe(5);
});

test("hides whether an object exists from callers without permission", async () => {
  const { tenant } = await app.user("ana", "lab");
  const objects = withFind(() => Promise.reject(new NotFoundError("no such rule")));
  await expect(writeObject(objects, app.services, refused(tenant))).rejects.toThrow("may not");
});
