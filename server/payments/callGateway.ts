import { isInTransaction } from "../db/transaction.ts";
import { GatewayError, ServiceError } from "../errors.ts";
import type { Services } from "../services.ts";
import type { BillingGateway } from "./gateway.ts";

/**
 * Calls the payment gateway, which has the configured time to answer.
 * @throws GatewayError it failed, or did not answer in time
 * @throws ServiceError what the gateway refuses with
 * @throws Error inside of a transaction: that would hold the database while a stranger thinks, and may run twice
 */
export async function callGateway<T>(
  services: Pick<Services, "db" | "billing" | "settings">,
  work: (gateway: BillingGateway, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (isInTransaction(services)) throw new Error("the payment gateway was called inside of a transaction");
  const signal = AbortSignal.timeout(services.settings.billing.timeout);
  const timeout = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  try {
    return await Promise.race([work(services.billing, signal), timeout]);
  } catch (error) {
    throw error instanceof ServiceError ? error : new GatewayError("processing_error", error);
  }
}
