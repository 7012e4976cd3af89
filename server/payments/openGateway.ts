import type { BillingGateway } from "./gateway.ts";
import { Ledger } from "./ledger/Ledger.ts";
import type { LedgerServices } from "./ledger/ledgerServices.ts";

/** Opens the payment gateway that the settings name; the ledger is the only one so far. */
export function openGateway(services: LedgerServices): BillingGateway {
  return { ledger: () => new Ledger(services) }[services.settings.billing.gateway]();
}
