import type { Namespace } from "../../db/generated/sqlite/client.ts";
import type { Transaction } from "../../db/transaction.ts";
import { ForbiddenError, PaymentError } from "../../errors.ts";
import type { Services } from "../../services.ts";

/** How long a removed device's slot still counts on a cloud instance, in milliseconds (rules section 7). */
const REMOVED_LIFE = 30 * 24 * 60 * 60_000;

interface Slot {
  readonly status: string;
  readonly statusUpdatedAt: Date;
}

type LimitedNamespace = Pick<Namespace, "tenantId" | "maxDevices">;

/** Devices that were removed later than this still hold their slots. */
export const removedSince = (services: Services): Date => new Date(services.now().getTime() - REMOVED_LIFE);

/** True when no further device can be accepted; on a cloud instance, recently removed devices count too. */
export async function isFull(
  services: Services,
  tx: Transaction,
  { tenantId, maxDevices }: LimitedNamespace,
): Promise<boolean> {
  if (maxDevices <= 0) return false;
  const removed = { status: "removed", statusUpdatedAt: { gt: removedSince(services) } };
  const counted =
    services.settings.edition === "cloud" ? [{ status: "accepted" }, removed] : [{ status: "accepted" }];
  return (await tx.device.count({ where: { tenantId, OR: counted } })) >= maxDevices;
}

/** True when the device can be accepted now; a removed device uses the slot that it still has. */
export function isAcceptable(services: Services, device: Slot, full: boolean): boolean {
  if (device.status === "accepted") return false;
  return !full || (device.status === "removed" && device.statusUpdatedAt > removedSince(services));
}

/**
 * @throws PaymentError the limit is reached, on a cloud instance
 * @throws ForbiddenError the limit is reached
 */
export async function checkLimit(
  services: Services,
  tx: Transaction,
  namespace: LimitedNamespace,
  device: Slot,
): Promise<void> {
  if (isAcceptable(services, device, await isFull(services, tx, namespace))) return;
  const message = `the namespace may have ${namespace.maxDevices} accepted devices at most`;
  throw services.settings.edition === "cloud" ? new PaymentError(message) : new ForbiddenError(message);
}
