import { describe, expect, test } from "vitest";
import { refreshBilling } from "../../../../server/features/billing/upkeep.ts";
import { settleInvoice } from "../../../../server/payments/ledger/invoices.ts";
import { shared } from "../../../support/shared.ts";
import { expectError, statusesOf } from "../../http/answers.ts";
import { startInternalApp } from "../../http/internalTestApp.ts";
import { type TestUser, valuesOf } from "../../http/testApp.ts";
import { accept, accepted, ELO, fleet, startCloud, subscribe, VISA } from "./support.ts";

const DAY = 24 * 3600;

const app = shared(startCloud);
const internal = shared(() => startInternalApp(app));

let users = 0;
const owner = (): Promise<TestUser> => {
  users += 1;
  return app.user(`owner${users}`, `lab${users}`);
};
const namespaceOf = async (user: TestUser) => (await user.call("getNamespace")).body;
const trailOf = async (user: TestUser): Promise<string[]> => {
  const request = { params: { tenant: user.tenant }, query: { kind: "billing" } };
  return valuesOf((await user.call("getAuditTrail", request)).body, "operation");
};

describe("a customer", () => {
  test("is created once for a namespace, with the owner's address", async () => {
    const user = await owner();
    expect((await user.call("getCustomer")).status).toBe(404);
    expect((await namespaceOf(user)).billing).toBeNull();
    expect((await user.call("createCustomer")).status).toBe(200);
    expect((await user.call("createCustomer")).status).toBe(409);
    const { body } = await user.call("getCustomer");
    expect(body).toMatchObject({ name: `lab${users}`, email: user.email, payment_methods: [] });
    expect((await namespaceOf(user)).billing).toMatchObject({
      active: false,
      status: "inactive",
      customer_id: body.id,
      subscription_id: "",
      current_period_end: 0,
    });
    expect(await trailOf(user)).toEqual(["createCustomer"]);
  });

  test("is created once by concurrent requests", async () => {
    const { token, tenant } = await owner();
    expect(await statusesOf([1, 2, 3, 4].map(() => app.call("createCustomer", { token })))).toEqual([
      200, 409, 409, 409,
    ]);
    const key = `gatehouse:customer:${tenant}`;
    expect(await app.services.db.ledgerCustomer.count({ where: { key } })).toBe(1);
  });

  test("has payment methods, with the first one as the default until it changes", async () => {
    const user = await owner();
    const change = async (id: "attach" | "detach" | "setDefault", method: string) =>
      (await user.call(`${id}PaymentMethod`, { body: { id: method } })).status;
    expect(await change("attach", VISA)).toBe(404);
    await user.call("createCustomer");
    const methods = async () => (await user.call("getCustomer")).body.payment_methods;
    expect(await change("attach", VISA)).toBe(200);
    expect(await change("attach", VISA)).toBe(200);
    expect(await change("attach", ELO)).toBe(200);
    const visa = {
      id: VISA,
      number: "xxxxxxxxxxxx4242",
      brand: "visa",
      exp_month: 10,
      exp_year: 2099,
      cvc: "xxx",
      default: true,
    };
    expect(await methods()).toEqual([visa, expect.objectContaining({ id: ELO, default: false })]);
    expect(await change("setDefault", ELO)).toBe(200);
    expect(await methods()).toMatchObject([{ default: false }, { default: true }]);
    expect(await change("detach", ELO)).toBe(200);
    expect(await methods()).toEqual([visa]);
    expect(await change("setDefault", ELO)).toBe(404);
    expect(await change("attach", "pm_unknown")).toBe(404);
    expect(await trailOf(user)).toContain("setDefaultPaymentMethod");
  });

  test("accepts no card number, and no expired card", async () => {
    const { token } = await owner();
    await app.call("createCustomer", { token });
    const number = await app.call("attachPaymentMethod", { token, body: { id: "4242424242424242" } });
    expect([number.status, number.text.includes("4242")]).toEqual([400, false]);
    const expired = await app.call("attachPaymentMethod", { token, body: { id: "pm_visa_4242_202001_x" } });
    expect([expired.status, expired.body]).toEqual([
      424,
      { message: "the payment gateway failed: expired_card", code: "expired_card" },
    ]);
    expect((await app.call("getCustomer", { token })).body.payment_methods).toEqual([]);
  });

  test("has at most ten payment methods", async () => {
    const { token } = await owner();
    await app.call("createCustomer", { token });
    const statuses: number[] = [];
    for (let n = 0; n < 11; n += 1) {
      const body = { id: `pm_visa_4242_209910_n${n}` };
      statuses.push((await app.call("attachPaymentMethod", { token, body })).status);
    }
    expect(statuses).toEqual([...Array(10).fill(200), 403]);
  });

  test("manages its billing on the service's own page", async () => {
    const { token } = await owner();
    expect((await app.call("createBillingPortal", { token })).status).toBe(404);
    await app.call("createCustomer", { token });
    const { body } = await app.call("createBillingPortal", { token });
    expect(body).toEqual({ url: `${app.services.settings.publicUrl}/settings/billing` });
  });
});

describe("a subscription", () => {
  test("needs a payment method, removes the device limit, and exists once", async () => {
    const user = await owner();
    expect((await user.call("createSubscription")).status).toBe(404);
    await user.call("createCustomer");
    expect((await user.call("createSubscription")).status).toBe(402);
    expect((await user.call("getSubscription")).status).toBe(404);
    await user.call("attachPaymentMethod", { body: { id: VISA } });
    const answers = await Promise.all([1, 2, 3].map(() => user.call("createSubscription")));
    expect(answers.map(({ status }) => status)).toContain(200);
    expect(answers.every(({ status }) => [200, 409].includes(status))).toBe(true);
    expect((await user.call("createSubscription")).status).toBe(409);

    const { body } = await user.call("getSubscription");
    expect(body).toMatchObject({ active: true, status: "active", invoices: [] });
    const { max_devices, billing } = await namespaceOf(user);
    expect([max_devices, billing.active, billing.subscription_id]).toEqual([-1, true, body.id]);
    expect(billing.current_period_end).toBe(body.end_at);
    const where = { customerId: billing.customer_id };
    expect(await app.services.db.ledgerSubscription.count({ where })).toBe(1);

    const last = await user.call("detachPaymentMethod", { body: { id: VISA } });
    expect(last.status).toBe(403);
  });

  test("is invoiced monthly for the most devices; unpaid invoices suspend it until they are paid", {
    tags: ["long"],
  }, async () => {
    const shop = await startCloud();
    shop.stopClock();
    const user = await shop.user("zoe", "zoes");
    expect(await subscribe(user)).toEqual([200, 200, 200]);
    const uids = await fleet(shop, user.tenant, 6);
    for (const uid of uids.slice(0, 5)) expect(await accept(user, uid)).toBe(200);
    await refreshBilling(shop.services);
    await user.call("deleteDevice", { params: { uid: uids[0] ?? "" } });
    const call = async (id: "getSubscription" | "createSubscription" | "evaluateBilling") =>
      shop.call(id, { token: await shop.tokenOf(user) });
    const upkeep = async (days: number) => {
      shop.pass(days * DAY);
      await refreshBilling(shop.services);
      // The first call synchronizes the namespace before it updates the payment gateway's ledger. The second call
      // therefore applies the new state of the ledger to the namespace.
      await refreshBilling(shop.services);
    };

    await upkeep(32);
    const { body } = await call("getSubscription");
    expect(body).toMatchObject({ active: true, status: "past_due" });
    expect(body.invoices).toEqual([
      { id: expect.stringMatching(/^in_/), status: "open", currency: "usd", amount: 5 * 250 },
    ]);
    // A namespace with unpaid invoices cannot accept further devices, and cannot be deleted.
    const token = await shop.tokenOf(user);
    expect(await accept({ ...user, token }, uids[5])).toBe(402);
    const params = { tenant: user.tenant };
    expect((await shop.call("deleteNamespace", { token, params })).status).toBe(402);
    expect((await call("evaluateBilling")).body).toEqual({ can_accept: false, can_connect: true });

    await upkeep(15);
    expect((await call("getSubscription")).body).toMatchObject({ active: false, status: "unpaid" });
    expect((await call("createSubscription")).status).toBe(402);
    expect((await call("evaluateBilling")).body).toEqual({ can_accept: false, can_connect: false });
    const find = () => shop.services.db.namespace.findUniqueOrThrow({ where: { tenantId: user.tenant } });
    expect((await find()).maxDevices).toBe(3);

    // There are no invoices for suspended months.
    await upkeep(90);
    await settleInvoice(shop.services, body.invoices[0].id, "paid");
    await upkeep(0);
    const { body: again } = await call("getSubscription");
    expect(again).toMatchObject({ active: true, status: "active", invoices: [{ status: "paid" }] });
    expect((await find()).maxDevices).toBe(-1);
    expect(await accept({ ...user, token: await shop.tokenOf(user) }, uids[5])).toBe(200);
    await shop.stop();
  });

  test("is deleted with its customer if its namespace was never used", async () => {
    const user = await owner();
    await subscribe(user);
    const { customer_id: id } = (await namespaceOf(user)).billing;
    await user.call("deleteNamespace");
    await refreshBilling(app.services);
    expect(await app.services.db.ledgerCustomer.count({ where: { id } })).toBe(0);
  });

  test("ends with its namespace at the next upkeep", async () => {
    const user = await owner();
    await subscribe(user);
    for (const uid of await fleet(app, user.tenant, 2)) await accept(user, uid);
    await refreshBilling(app.services);
    const { customer_id: customerId } = (await namespaceOf(user)).billing;
    const { status } = await user.call("deleteNamespace");
    expect(status).toBe(200);
    const { db } = app.services;
    const state = async () => (await db.ledgerSubscription.findFirst({ where: { customerId } }))?.status;
    expect(await state()).toBe("active");
    await refreshBilling(app.services);
    expect(await state()).toBe("canceled");
    const invoices = await db.ledgerInvoice.findMany({ where: { customerId } });
    expect(invoices).toMatchObject([{ devices: 2, amount: 500n, status: "open" }]);
    app.pass(601);
    await refreshBilling(app.services);
    await refreshBilling(app.services);
    expect(await db.billing.count({ where: { customerId } })).toBe(0);
  });
});

describe("the devices to choose from", () => {
  test("are the three with the latest reports, and the chosen ones stay accepted", async () => {
    const user = await owner();
    const { tenant } = user;
    await subscribe(user);
    const uids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      uids.push(...(await fleet(app, tenant, 1)));
      app.pass(1);
    }
    for (const uid of uids) expect(await accept(user, uid)).toBe(200);
    const offered = await user.call("getDevicesMostUsed");
    expect(offered.headers.get("x-total-count")).toBe("3");
    expect(valuesOf(offered.body, "uid")).toEqual(uids.toReversed().slice(0, 3));

    const choose = (choices: readonly (string | undefined)[]) =>
      user.call("choiceDevices", { body: { choices } });
    const otherDevices = await fleet(app, (await owner()).tenant, 1);
    expect((await choose(uids.slice(0, 4))).status).toBe(400);
    expect((await choose([uids[0], uids[0]])).status).toBe(400);
    expect((await choose(otherDevices)).body.message).toMatch(/^choices: /);
    expect(await accepted(app, user)).toBe(5);
    expect((await choose([uids[1], uids[3]])).status).toBe(200);
    const rows = await app.services.db.device.findMany({ where: { tenantId: tenant, status: "accepted" } });
    expect(rows.map(({ uid }) => uid).sort()).toEqual([uids[1], uids[3]].sort());
    expect(await trailOf(user)).toContain("choiceDevices");
    expect((await choose([])).status).toBe(200);
    expect(await accepted(app, user)).toBe(0);
  });
});

describe("an evaluation and a report", () => {
  test("answer the same on both listeners: by the limit without a subscription", async () => {
    const user = await owner();
    const { tenant } = user;
    const uids = await fleet(app, tenant, 3);
    const query = { action: "device_accept" };
    const headers = { "X-Tenant-ID": tenant };
    const both = async () => [
      (await user.call("evaluateBilling")).body,
      (await user.call("reportBilling", { query })).status,
      (await internal.call("evaluateNamespaceBilling", { headers })).body,
      (await internal.call("reportNamespaceBilling", { headers, query })).status,
    ];
    const free = { can_accept: true, can_connect: true };
    expect(await both()).toEqual([free, 200, free, 200]);
    for (const uid of uids) await accept(user, uid);
    const full = { can_accept: false, can_connect: true };
    expect(await both()).toEqual([full, 402, full, 402]);
    await subscribe(user);
    expect(await both()).toEqual([free, 200, free, 200]);
    const other = await user.call("reportBilling", { query: { action: "delete" } });
    expect(other.status).toBe(400);
  });

  test("require an existing namespace from trusted services", async () => {
    for (const headers of [{}, { "X-Tenant-ID": "lab" }] as Record<string, string>[]) {
      expectError(
        await internal.call("evaluateNamespaceBilling", { headers }),
        400,
        /^X-Tenant-ID (is|must)/,
      );
    }
    const headers = { "X-Tenant-ID": "00000000-0000-4000-8000-000000000000" };
    expect((await internal.call("evaluateNamespaceBilling", { headers })).status).toBe(404);
  });
});
