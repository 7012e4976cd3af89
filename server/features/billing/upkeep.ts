import { MINUTE } from "@gatehouse-access/sdk/times";
import type { Billing } from "../../db/generated/sqlite/client.ts";
import { callPaymentGateway } from "../../payments/callPaymentGateway.ts";
import type { Services } from "../../services.ts";
import { countAccepted } from "../devices/deviceCounts.ts";
import { removedSince } from "../devices/deviceLimit.ts";
import { hasActiveSubscription } from "./record.ts";
import { refreshSubscription } from "./subscription.ts";

/** Number of namespaces that one database query reads. */
const BATCH = 200;
/** Subscription status that the service stores after it has ended the subscription of a deleted namespace. */
const ENDED = "canceled";
/**
 * Maximum duration of a billing request, in milliseconds. When this time has passed since the deletion of a namespace,
 * no earlier request can still start a subscription. A request calls the gateway a few times, and each call has a
 * timeout.
 */
const LONGEST_REQUEST = 10 * MINUTE;

/**
 * Reports the number of a namespace's devices to the gateway, and stores the state of the subscription that the gateway
 * returns.
 */
async function refresh(services: Services, row: Billing): Promise<void> {
  const { tenantId, customerId } = row;
  const alive = await services.db.namespace.count({ where: { tenantId } });
  if (alive === 0) return endSubscriptionOf(services, row);
  if (hasActiveSubscription(row)) {
    const devices = await countAccepted(services.db, tenantId);
    await callPaymentGateway(services, (gateway, signal) =>
      gateway.reportDevices(customerId, devices, { signal }),
    );
  }
  await refreshSubscription(services, tenantId, customerId);
}

/**
 * Ends the subscription of a deleted namespace. A request that began just before the deletion may start a subscription
 * after the deletion. Therefore, the service ends the subscription again later, and keeps the billing row until then.
 */
async function endSubscriptionOf(
  services: Services,
  { tenantId, customerId, status, updatedAt }: Billing,
): Promise<void> {
  await callPaymentGateway(services, (gateway, signal) => gateway.endSubscription(customerId, { signal }));
  const now = services.now();
  const where = { tenantId, status, updatedAt };
  if (status !== ENDED) {
    await services.db.billing.updateMany({ where, data: { status: ENDED, updatedAt: now } });
  } else if (now.getTime() - updatedAt.getTime() > LONGEST_REQUEST) {
    await services.db.billing.deleteMany({ where });
  }
}

/**
 * Synchronizes all namespaces with the gateway. If one namespace fails, the others are still synchronized.
 * @throws AggregateError contains all failures
 */
export async function refreshBilling(services: Services): Promise<void> {
  if (services.settings.edition !== "cloud") return;
  const failures: unknown[] = [];
  const attempt = (work: Promise<void>) => work.catch((error: unknown) => void failures.push(error));
  for (let after = ""; ; ) {
    const rows = await services.db.billing.findMany({
      where: { tenantId: { gt: after } },
      orderBy: { tenantId: "asc" },
      take: BATCH,
    });
    for (const row of rows) await attempt(refresh(services, row));
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.tenantId;
  }
  await attempt(services.billing.upkeep());
  if (failures.length > 0)
    throw new AggregateError(failures, "cannot synchronize billing with the payment gateway");
}

/** Deletes the rows of removed devices that no longer count toward the device limit (rules section 7). */
export async function forgetRemovedDevices(services: Services): Promise<void> {
  await services.db.device.deleteMany({
    where: { status: "removed", statusUpdatedAt: { lte: removedSince(services) } },
  });
}
