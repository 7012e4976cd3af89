import { beforeEach, describe, expect, test } from "vitest";
import { inTransaction, within } from "../../../../server/db/sql/transaction.ts";
import { refreshBilling } from "../../../../server/features/billing/upkeep.ts";
import { callPaymentGateway } from "../../../../server/payments/callPaymentGateway.ts";
import type { PaymentGateway } from "../../../../server/payments/paymentGateway.ts";
import { shared } from "../../../support/shared.ts";
import type { TestApp, TestUser } from "../../http/testApp.ts";
import { accept, accepted, fleet, replacePaymentGateway, startCloud, subscribe, VISA } from "./support.ts";

const app = shared(startCloud);

let users = 0;
let user: TestUser;
beforeEach(async () => {
  users += 1;
  user = await app.user(`owner${users}`, `lab${users}`);
});

const broken = () => Promise.reject(new Error("secret-of-the-gateway: connection refused"));
/** A payment gateway whose calls all fail. */
const BROKEN = new Proxy({} as PaymentGateway, { get: () => broken });
const FAILED = { message: "the payment gateway failed: processing_error", code: "processing_error" };

/** Returns all stored data of the namespace, as JSON. */
async function state() {
  const { db } = app.services;
  const { tenant: tenantId } = user;
  return JSON.stringify(
    [
      await db.namespace.findUnique({ where: { tenantId } }),
      await db.billing.findUnique({ where: { tenantId } }),
      await db.device.findMany({ where: { tenantId }, orderBy: { uid: "asc" } }),
      await db.auditEntry.count({ where: { tenantId } }),
    ],
    (_, value) => (typeof value === "bigint" ? String(value) : value),
  );
}

type Calls = [Parameters<TestApp["call"]>[0], Parameters<TestApp["call"]>[1]?][];

async function everythingFails(calls: Calls) {
  const before = await state();
  const restore = replacePaymentGateway(app, BROKEN);
  for (const [id, options] of calls) {
    const { status, body } = await app.call(id, { token: user.token, ...options });
    expect([id, status, body]).toEqual([id, 424, FAILED]);
  }
  restore();
  expect(await state()).toBe(before);
}

describe("answers 424 and changes nothing when the gateway fails", () => {
  test("without a customer", () => everythingFails([["createCustomer"]]));

  test("with a customer", async () => {
    await user.call("createCustomer");
    const body = { id: VISA };
    await everythingFails([
      ["getCustomer"],
      ["attachPaymentMethod", { body }],
      ["detachPaymentMethod", { body }],
      ["setDefaultPaymentMethod", { body }],
      ["getSubscription"],
      ["createSubscription"],
      ["createBillingPortal"],
    ]);
  });

  test("with a subscription", async () => {
    await subscribe(user);
    const [uid = ""] = await fleet(app, user.tenant, 1);
    await everythingFails([
      ["acceptDevice", { params: { uid } }],
      ["updateDeviceStatus", { params: { uid, status: "accept" } }],
      ["deleteNamespace", { params: { tenant: user.tenant } }],
      ["evaluateBilling"],
      ["reportBilling", { query: { action: "device_accept" } }],
    ]);
    expect(await accept(user, uid)).toBe(200);
  });
});

test("accepts the gateway's refusal of a device", async () => {
  await subscribe(user);
  const uids = await fleet(app, user.tenant, 2);
  const restore = replacePaymentGateway(app, { allows: async () => false });
  expect(await accept(user, uids[0])).toBe(402);
  const reject = { token: user.token, params: { uid: uids[1] ?? "", status: "reject" } };
  expect((await app.call("updateDeviceStatus", reject)).status).toBe(200);
  restore();
  expect(await accepted(app, user)).toBe(0);
});

test("fails and aborts a call of the gateway after its time limit", async () => {
  const slow = await startCloud(50);
  const user = await slow.user("slow", "slow");
  let stopped = false;
  replacePaymentGateway(slow, {
    createCustomer: (_, { signal }) =>
      new Promise(() => {
        signal.addEventListener("abort", () => {
          stopped = true;
        });
      }),
  });
  const { status, body } = await user.call("createCustomer");
  expect([status, body, stopped]).toEqual([424, FAILED, true]);
  await slow.stop();
});

describe("when the gateway's answer is lost after a successful call", () => {
  /**
   * Calls the payment gateway successfully, and then throws an error, as if the connection had been lost before the
   * response.
   */
  const losing =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await work(...args);
      throw new Error("connection reset");
    };

  /** Creates a paid invoice for a subscription that has ended. */
  async function formerInvoice(customerId: string): Promise<void> {
    const { db, now } = app.services;
    const of = { customerId, createdAt: new Date(0), devices: 2 };
    const ended = { status: "canceled", peak: 2, month: 0, periodEnd: now() };
    await db.ledgerSubscription.create({ data: { id: "sub_former", key: "former", ...of, ...ended } });
    const paid = { status: "paid", currency: "usd", amount: 500n, month: 0 };
    await db.ledgerInvoice.create({
      data: { id: "in_former", subscriptionId: "sub_former", ...of, ...paid },
    });
  }

  test("creates no second customer on repetition", async () => {
    const { billing, db } = app.services;
    const restore = replacePaymentGateway(app, {
      createCustomer: losing(billing.createCustomer.bind(billing)),
    });
    const before = await db.ledgerCustomer.count();
    expect((await user.call("createCustomer")).status).toBe(424);
    restore();
    expect((await user.call("createCustomer")).status).toBe(200);
    expect(await db.ledgerCustomer.count()).toBe(before + 1);
  });

  test.each(["the repetition", "the upkeep", "a read"])("%s finds the subscription", async (finder) => {
    const { tenant } = user;
    const { billing, db } = app.services;
    await user.call("createCustomer");
    await user.call("attachPaymentMethod", { body: { id: VISA } });
    const restore = replacePaymentGateway(app, {
      createSubscription: losing(billing.createSubscription.bind(billing)),
    });
    expect((await user.call("createSubscription")).status).toBe(424);
    restore();
    const read = async () => (await user.call("getNamespace", { params: { tenant } })).body;
    expect([(await read()).max_devices, (await read()).billing.active]).toEqual([3, false]);
    if (finder === "the upkeep") await refreshBilling(app.services);
    else {
      const id = finder === "the repetition" ? "createSubscription" : "getSubscription";
      expect((await user.call(id)).status).toBe(200);
    }
    const { max_devices, billing: current } = await read();
    expect([max_devices, current.active]).toEqual([-1, true]);
    const where = { customerId: current.customer_id };
    expect(await db.ledgerSubscription.count({ where })).toBe(1);
  });

  test("ends a subscription that starts after its namespace was deleted", async () => {
    const { tenant } = user;
    const { billing, db } = app.services;
    await user.call("createCustomer");
    await user.call("attachPaymentMethod", { body: { id: VISA } });
    const { customerId } = await db.billing.findUniqueOrThrow({ where: { tenantId: tenant } });
    await formerInvoice(customerId);
    const restore = replacePaymentGateway(app, {
      createSubscription: async (...args) => {
        expect((await user.call("deleteNamespace", { params: { tenant } })).status).toBe(200);
        await refreshBilling(app.services);
        return billing.createSubscription(...args);
      },
    });
    expect((await user.call("createSubscription")).status).toBe(200);
    restore();
    const states = async () =>
      (await db.ledgerSubscription.findMany({ where: { customerId } })).map((row) => row.status);
    expect((await states()).sort()).toEqual(["active", "canceled"]);
    await refreshBilling(app.services);
    expect(await states()).toEqual(["canceled", "canceled"]);
  });

  test("only checks when it allows a device, so that nothing has to be undone", async () => {
    await subscribe(user);
    const { db } = app.services;
    const [first = "", second = ""] = await fleet(app, user.tenant, 2);
    // Both devices have the same name. The payment gateway allows the second device, but the service refuses it.
    await db.device.updateMany({ where: { uid: { in: [first, second] } }, data: { name: "same-name" } });
    expect(await accept(user, first)).toBe(200);
    expect(await accept(user, second)).toBe(409);
    await refreshBilling(app.services);
    const { customerId } = await db.billing.findUniqueOrThrow({ where: { tenantId: user.tenant } });
    expect(await db.ledgerSubscription.findFirst({ where: { customerId } })).toMatchObject({ peak: 1 });
  });
});

test("runs the upkeep of other namespaces if one namespace's gateway calls fail", async () => {
  await subscribe(user);
  await fleet(app, user.tenant, 1);
  const { billing } = app.services;
  const reported: string[] = [];
  const { customerId } = await app.services.db.billing.findUniqueOrThrow({
    where: { tenantId: user.tenant },
  });
  const restore = replacePaymentGateway(app, {
    reportDevices: async (id, devices, call) => {
      if (id !== customerId) throw new Error("no");
      await billing.reportDevices(id, devices, call);
      reported.push(id);
    },
  });
  await expect(refreshBilling(app.services)).rejects.toThrow(
    "cannot synchronize billing with the payment gateway",
  );
  restore();
  expect(reported).toEqual([customerId]);
});

test("rejects calls of the gateway inside a transaction", async () => {
  const { services } = app;
  const call = inTransaction(services, (tx) =>
    callPaymentGateway(within(services, tx), (gateway, signal) => gateway.readCustomer("cus", { signal })),
  );
  await expect(call).rejects.toThrow("in a transaction");
});
