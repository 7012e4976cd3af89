import { isInTransaction } from "../db/sql/transaction.ts";
import { PaymentGatewayError, ServiceError } from "../errors.ts";
import type { Services } from "../services.ts";
import type { PaymentGateway } from "./paymentGateway.ts";

/**
 * Calls the payment gateway with the configured timeout.
 * @throws PaymentGatewayError the gateway failed, or did not respond in time
 * @throws ServiceError the gateway rejected the call
 * @throws Error the caller is in a transaction. The transaction would lock the database during the call, and a retry of
 * the transaction would repeat the call.
 */
export async function callPaymentGateway<T>(
  services: Pick<Services, "db" | "billing" | "settings">,
  work: (gateway: PaymentGateway, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (isInTransaction(services)) throw new Error("the payment gateway was called in a transaction");
  const signal = AbortSignal.timeout(services.settings.billingTimeout * 1000);
  const timeout = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  try {
    return await Promise.race([work(services.billing, signal), timeout]);
  } catch (error) {
    throw error instanceof ServiceError ? error : new PaymentGatewayError("processing_error", error);
  }
}
