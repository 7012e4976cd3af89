import type { LedgerInvoice, LedgerSubscription } from "../../db/generated/sqlite/client.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { ConflictError } from "../../errors.ts";
import type { Invoice, Subscription } from "../paymentGateway.ts";
import { writeInvoice } from "./invoices.ts";
import { type LedgerServices, newId, onceUnderKey } from "./ledgerServices.ts";
import { addMonths } from "./months.ts";
import { LIVING, RUNNING } from "./states.ts";

/** Maximum number of invoices in a response. */
const MOST_INVOICES = 100;

/**
 * Creates a subscription. Several calls with the same idempotency key create only one subscription.
 * @throws ConflictError the customer has another subscription that has not ended
 */
export async function createSubscription(
  services: LedgerServices,
  customerId: string,
  devices: number,
  key: string,
): Promise<Subscription> {
  const { db } = services;
  const row = await onceUnderKey(
    () => db.ledgerSubscription.findUnique({ where: { key } }),
    () =>
      inTransaction(services, async (tx) => {
        if ((await tx.ledgerSubscription.count({ where: { customerId, status: { in: LIVING } } })) > 0) {
          throw new ConflictError("the customer has a subscription that has not ended");
        }
        const createdAt = services.now();
        const id = newId("sub");
        const month = { month: 0, periodEnd: addMonths(createdAt, 1), devices, peak: devices };
        return tx.ledgerSubscription.create({
          data: { id, key, customerId, status: "active", createdAt, ...month },
        });
      }),
  );
  return present(row, await invoicesOf(services, customerId));
}

/** Returns the customer's latest subscription, or null if the customer has none. */
export async function readSubscription(
  services: LedgerServices,
  customerId: string,
): Promise<Subscription | null> {
  const row = await services.db.ledgerSubscription.findFirst({
    where: { customerId },
    orderBy: [{ createdAt: "desc" }, { id: "desc" }],
  });
  return row && present(row, await invoicesOf(services, customerId));
}

/**
 * Ends a customer's subscription, and creates the last invoice, for the current month. If no invoice of the customer is
 * above 0, deletes the customer, because any user can create customers.
 */
export async function endSubscription(services: LedgerServices, customerId: string): Promise<void> {
  await inTransaction(services, async (tx) => {
    const rows = await tx.ledgerSubscription.findMany({ where: { customerId, status: { in: LIVING } } });
    for (const row of rows) {
      if (RUNNING.includes(row.status)) await writeInvoice(services, tx, row);
      await tx.ledgerSubscription.update({
        where: { id: row.id },
        data: { status: "canceled", periodEnd: services.now() },
      });
    }
    if ((await tx.ledgerInvoice.count({ where: { customerId, amount: { gt: 0 } } })) > 0) return;
    await tx.ledgerCustomer.deleteMany({ where: { id: customerId } });
  });
}

/** Stores the current number of accepted devices, and the highest number in the current month. */
export async function reportDevices(
  { db }: LedgerServices,
  customerId: string,
  devices: number,
): Promise<void> {
  const running = { customerId, status: { in: RUNNING } };
  await db.ledgerSubscription.updateMany({ where: running, data: { devices } });
  await db.ledgerSubscription.updateMany({
    where: { ...running, peak: { lt: devices } },
    data: { peak: devices },
  });
}

async function invoicesOf({ db }: LedgerServices, customerId: string): Promise<Invoice[]> {
  const latest = { orderBy: [{ createdAt: "desc" as const }, { id: "desc" as const }], take: MOST_INVOICES };
  const [open, others] = await Promise.all([
    db.ledgerInvoice.findMany({ where: { customerId, status: "open" }, ...latest }),
    db.ledgerInvoice.findMany({ where: { customerId, status: { not: "open" } }, ...latest }),
  ]);
  return [...open, ...others]
    .slice(0, MOST_INVOICES)
    .sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime())
    .map(presentInvoice);
}

const presentInvoice = ({ id, status, currency, amount }: LedgerInvoice): Invoice => ({
  id,
  status: status as Invoice["status"],
  currency: currency as Invoice["currency"],
  amount: Number(amount),
});

const present = (row: LedgerSubscription, invoices: readonly Invoice[]): Subscription => ({
  id: row.id,
  status: row.status as Subscription["status"],
  endAt: Math.floor(row.periodEnd.getTime() / 1000),
  invoices,
});
