import { billing } from "@gatehouse-access/sdk/contract";
import type { Billing } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { NotFoundError } from "../../errors.ts";
import type { Subscription } from "../../payments/paymentGateway.ts";
import type { Services, SqlServices } from "../../services.ts";
import { presenter } from "../fields.ts";

type Status = billing.SubscriptionStatus;

/** Returns the stored billing state of a namespace, or null if the namespace has no customer. */
export function billingOf({ db }: Pick<SqlServices, "db">, tenantId: string): Promise<Billing | null> {
  return findRow(db, "Billing", { tenantId });
}

/**
 * Returns the billing state of a namespace that has a customer.
 * @throws NotFoundError the namespace has no customer
 */
export async function customerOf(services: Pick<Services, "db">, tenantId: string): Promise<Billing> {
  const row = await billingOf(services, tenantId);
  if (!row) throw new NotFoundError("the namespace has no customer");
  return row;
}

/**
 * Returns true if the namespace has an active subscription. An active subscription removes the limits of a free
 * namespace.
 */
export const hasActiveSubscription = <Row extends Pick<Billing, "status">>(row: Row | null): row is Row =>
  row !== null && billing.isActiveSubscription(row.status as Status);

/** Converts a namespace's billing state to its wire format (models section 4). */
export const presentBilling = presenter<Billing, typeof billing.namespaceBilling>(billing.namespaceBilling, {
  active: hasActiveSubscription,
});

/**
 * Stores the state of a subscription that the gateway returned. Only the gateway changes this state. An active
 * subscription removes the device limit of the namespace. When the subscription ends, the previous limit applies again.
 */
export async function storeSubscription(
  services: Services,
  tenantId: string,
  subscription: Subscription | null,
): Promise<void> {
  const state = {
    subscriptionId: subscription?.id ?? "",
    status: subscription?.status ?? "inactive",
    currentPeriodEnd: BigInt(subscription?.endAt ?? 0),
  };
  await inTransaction(services, async (tx) => {
    const row = await tx.billing.findUnique({ where: { tenantId } });
    if (!row || isSame(row, state)) return;
    const namespace = await tx.namespace.findUnique({ where: { tenantId }, select: { maxDevices: true } });
    const [was, is] = [hasActiveSubscription(row), hasActiveSubscription({ ...row, ...state })];
    // A deleted namespace has no device limit. Its billing state is still stored, because the service must still end
    // the subscription.
    if (namespace && was !== is) {
      const maxDevices = is ? -1 : row.freeDevices;
      await tx.namespace.update({ where: { tenantId }, data: { maxDevices } });
    }
    const freeDevices = namespace && is && !was ? namespace.maxDevices : row.freeDevices;
    await tx.billing.update({
      where: { tenantId },
      data: { ...state, freeDevices, updatedAt: services.now() },
    });
  });
}

const isSame = (
  row: Billing,
  state: Pick<Billing, "subscriptionId" | "status" | "currentPeriodEnd">,
): boolean =>
  row.subscriptionId === state.subscriptionId &&
  row.status === state.status &&
  row.currentPeriodEnd === state.currentPeriodEnd;
