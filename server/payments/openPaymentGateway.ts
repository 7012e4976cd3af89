import { Ledger } from "./ledger/Ledger.ts";
import type { LedgerServices } from "./ledger/ledgerServices.ts";
import type { PaymentGateway } from "./paymentGateway.ts";

/** Returns the payment gateway that the settings select. The ledger is the only available gateway. */
export function openPaymentGateway(services: LedgerServices): PaymentGateway {
  return { ledger: () => new Ledger(services) }[services.settings.billingGateway]();
}
