import type { BillingGateway } from "./gateway.ts";
import { Ledger } from "./ledger/Ledger.ts";
import type { LedgerServices } from "./ledger/ledgerServices.ts";

/** The payment gateway that the settings name; there is one so far. */
export function openGateway(services: LedgerServices): BillingGateway {
  return { ledger: () => new Ledger(services) }[services.settings.billing.gateway]();
}
