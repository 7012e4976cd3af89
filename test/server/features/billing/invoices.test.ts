import { afterAll, beforeAll, expect, test } from "vitest";
import { buildAdminServer } from "../../../../server/admin/adminServer.ts";
import { refreshBilling } from "../../../../server/features/billing/upkeep.ts";
import { addMonths, monthAt } from "../../../../server/payments/ledger/months.ts";
import { shared } from "../../../support/shared.ts";
import type { TestUser } from "../../http/testApp.ts";
import { accept, fleet, startCloud, subscribe } from "./support.ts";

const DAY = 24 * 3600;

const app = shared(startCloud);
let user: TestUser;
let admin: ReturnType<typeof buildAdminServer>;
beforeAll(async () => {
  app.stopClock();
  user = await app.user("ana", "anas");
  await subscribe(user);
  for (const uid of await fleet(app, user.tenant, 2)) await accept(user, uid);
  // The administration server uses the signing keys only for users' tokens, which this test does not send to it.
  const unused = undefined as never;
  const logger = { level: "silent", child: () => logger } as never;
  admin = buildAdminServer(app.services, {
    logger: Object.assign(
      logger,
      Object.fromEntries(
        ["info", "warn", "error", "debug", "trace", "fatal"].map((name) => [name, () => {}]),
      ),
    ),
    address: () => app.url,
    keys: unused,
    snapshots: undefined,
    external: { secret: "", settings: [] },
    hostKey: () => undefined,
  });
});
afterAll(() => admin.close());

const list = async (query: string) => (await admin.inject({ url: `/invoices?limit=10${query}` })).json();
const settle = async (id: string, status: string) => {
  const answer = await admin.inject({ method: "POST", url: "/settle-invoice", payload: { id, status } });
  return [answer.statusCode, answer.json()];
};

test("lists open invoices and settles them, with immediate effect", async () => {
  await refreshBilling(app.services);
  app.pass(32 * DAY);
  await refreshBilling(app.services);
  const [invoice, ...others] = await list("&status=open");
  expect(others).toEqual([]);
  expect(invoice).toMatchObject({
    customer: "anas",
    email: user.email,
    amount: 500,
    currency: "usd",
    devices: 2,
  });
  app.pass(15 * DAY);
  await refreshBilling(app.services);
  await refreshBilling(app.services);
  const find = () => app.services.db.billing.findUniqueOrThrow({ where: { tenantId: user.tenant } });
  expect((await find()).status).toBe("unpaid");

  expect(await settle(invoice.id, "lost")).toEqual([
    400,
    { message: expect.stringMatching(/^status must be/) },
  ]);
  expect(await settle("in_0", "paid")).toEqual([404, { message: "no such invoice" }]);
  expect(await settle(invoice.id, "paid")).toEqual([200, { id: invoice.id, status: "paid" }]);
  expect((await find()).status).toBe("active");
  expect(await settle(invoice.id, "paid")).toEqual([200, { id: invoice.id, status: "paid" }]);
  expect((await settle(invoice.id, "voided"))[0]).toBe(400);
  expect(await list("&status=open")).toEqual([]);
  expect(await list("")).toHaveLength(1);
  const where = { operation: "settle-invoice", tenantId: user.tenant };
  expect(await app.services.db.auditEntry.count({ where })).toBe(1);
});

test("invoices every month once with concurrent upkeep processes", async () => {
  app.pass(70 * DAY);
  await Promise.all([1, 2, 3].map(() => refreshBilling(app.services)));
  const rows = await app.services.db.ledgerInvoice.findMany({ orderBy: { month: "asc" } });
  const months = rows.map(({ month }) => month);
  expect(months).toEqual([...new Set(months)]);
  expect(months.length).toBeGreaterThanOrEqual(3);
});

test("counts months from the day of the start, and shortens them to the last day of a month", () => {
  const start = new Date("2024-01-31T10:00:00Z");
  const days = [0, 1, 2, 3, 13].map((months) => addMonths(start, months).toISOString().slice(0, 10));
  expect(days).toEqual(["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2025-02-28"]);
  expect(monthAt(start, new Date("2024-02-29T09:59:59Z"))).toBe(0);
  expect(monthAt(start, new Date("2024-02-29T10:00:00Z"))).toBe(1);
  expect(monthAt(start, new Date("2025-03-01T00:00:00Z"))).toBe(13);
});
