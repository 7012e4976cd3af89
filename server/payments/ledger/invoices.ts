import { DAY } from "@gatehouse-access/sdk/times";
import type { LedgerSubscription } from "../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction } from "../../db/sql/transaction.ts";
import { InvalidError, NotFoundError } from "../../errors.ts";
import { type LedgerServices, newId } from "./ledgerServices.ts";
import { addMonths, monthAt } from "./months.ts";
import { RUNNING } from "./states.ts";

/** Age, in milliseconds, at which an open invoice suspends the subscription: 14 days. */
const GRACE = 14 * DAY;
/** Number of subscriptions per query. */
const BATCH = 100;

/** The statuses that an operator can set for an open invoice. */
export const SETTLEMENTS = ["paid", "uncollectible", "voided"] as const;
export type Settlement = (typeof SETTLEMENTS)[number];

/**
 * Creates the invoice for the current month of a subscription, unless the invoice already exists. An invoice with the
 * amount 0 is stored as paid.
 */
export async function writeInvoice(
  { settings, now }: LedgerServices,
  tx: Transaction,
  { id: subscriptionId, customerId, month, peak }: LedgerSubscription,
): Promise<void> {
  const of = { subscriptionId_month: { subscriptionId, month } };
  if (await tx.ledgerInvoice.findUnique({ where: of, select: { id: true } })) return;
  const amount = BigInt(peak) * BigInt(settings.billingDevicePrice);
  await tx.ledgerInvoice.create({
    data: {
      id: newId("in"),
      subscriptionId,
      month,
      customerId,
      status: amount === 0n ? "paid" : "open",
      currency: settings.billingCurrency,
      amount,
      devices: peak,
      createdAt: now(),
    },
  });
}

/** Creates the invoices of months that have ended, and suspends subscriptions that have overdue invoices. */
export async function closeMonths(services: LedgerServices): Promise<void> {
  const { db, now } = services;
  const ended = { status: { in: RUNNING }, periodEnd: { lte: now() } };
  for (;;) {
    const rows = await db.ledgerSubscription.findMany({ where: ended, select: { id: true }, take: BATCH });
    for (const { id } of rows) await closeMonth(services, id);
    if (rows.length === 0) break;
  }
  const overdue = await db.ledgerInvoice.findMany({
    where: {
      status: "open",
      createdAt: { lte: new Date(now().getTime() - GRACE) },
      subscription: { status: { in: RUNNING } },
    },
    select: { subscriptionId: true },
    distinct: ["subscriptionId"],
  });
  for (const { subscriptionId } of overdue) {
    await inTransaction(services, (tx) => restate(services, tx, subscriptionId));
  }
}

async function closeMonth(services: LedgerServices, id: string): Promise<void> {
  await inTransaction(services, async (tx) => {
    const row = await tx.ledgerSubscription.findUniqueOrThrow({ where: { id } });
    // Another process may have already closed the month.
    if (!RUNNING.includes(row.status) || row.periodEnd > services.now()) return;
    await writeInvoice(services, tx, row);
    const month = row.month + 1;
    await tx.ledgerSubscription.update({
      where: { id },
      data: { month, periodEnd: addMonths(row.createdAt, month + 1), peak: row.devices },
    });
    await restate(services, tx, id);
  });
}

/** Updates a subscription's status from the customer's open invoices. */
async function restate(services: LedgerServices, tx: Transaction, id: string): Promise<void> {
  const row = await tx.ledgerSubscription.findUniqueOrThrow({ where: { id } });
  if (row.status === "canceled") return;
  const oldest = await tx.ledgerInvoice.findFirst({
    where: { customerId: row.customerId, status: "open" },
    orderBy: { createdAt: "asc" },
  });
  const due = services.now().getTime() - GRACE;
  const status = !oldest ? "active" : oldest.createdAt.getTime() <= due ? "unpaid" : "past_due";
  await tx.ledgerSubscription.update({
    where: { id },
    data: { status, ...(row.status === "unpaid" && status !== "unpaid" && currentMonth(services, row)) },
  });
}

/**
 * Returns the column values that restart a suspended subscription in the current month. The customer does not pay for
 * the months in which the subscription was suspended.
 */
function currentMonth({ now }: LedgerServices, { createdAt }: LedgerSubscription) {
  const month = monthAt(createdAt, now());
  return { month, periodEnd: addMonths(createdAt, month + 1), devices: 0, peak: 0 };
}

/**
 * Settles an open invoice. A suspended subscription continues when all invoices of the customer are settled.
 * @throws NotFoundError the invoice does not exist
 * @throws InvalidError the invoice was settled with a different status
 */
export async function settleInvoice(
  services: LedgerServices,
  id: string,
  status: Settlement,
): Promise<{ readonly customerId: string; readonly settledNow: boolean }> {
  return inTransaction(services, async (tx) => {
    const invoice = await tx.ledgerInvoice.findUnique({ where: { id } });
    if (!invoice) throw new NotFoundError("no such invoice");
    const { customerId } = invoice;
    if (invoice.status === status) return { customerId, settledNow: false };
    if (invoice.status !== "open")
      throw new InvalidError(`the invoice is already settled: ${invoice.status}`);
    await tx.ledgerInvoice.update({ where: { id }, data: { status } });
    await restate(services, tx, invoice.subscriptionId);
    return { customerId, settledNow: true };
  });
}
