import type { billing } from "@gatehouse-access/sdk/contract";
import type { PaymentGateway, PaymentGatewayCreation } from "../paymentGateway.ts";
import { createCustomer, readCustomer } from "./customers.ts";
import { closeMonths } from "./invoices.ts";
import type { LedgerServices } from "./ledgerServices.ts";
import { attach, detach, setDefault } from "./paymentMethods.ts";
import { RUNNING } from "./states.ts";
import { createSubscription, endSubscription, readSubscription, reportDevices } from "./subscriptions.ts";

/**
 * The payment gateway in the service's own database. The ledger stores customers and subscriptions, and creates a
 * monthly invoice for the highest number of accepted devices. The ledger does not collect money: an operator reports
 * which invoices are paid. See `docs/operate/billing.md`.
 */
export class Ledger implements PaymentGateway {
  readonly #services: LedgerServices;

  constructor(services: LedgerServices) {
    this.#services = services;
  }

  createCustomer(customer: { readonly name: string; readonly email: string }, call: PaymentGatewayCreation) {
    return createCustomer(this.#services, customer, call.idempotencyKey);
  }

  readCustomer(customerId: string) {
    return readCustomer(this.#services, customerId);
  }

  async attachPaymentMethod(customerId: string, paymentMethodId: string) {
    await attach(this.#services, customerId, paymentMethodId);
  }

  async detachPaymentMethod(customerId: string, paymentMethodId: string) {
    await detach(this.#services, customerId, paymentMethodId);
  }

  async setDefaultPaymentMethod(customerId: string, paymentMethodId: string) {
    await setDefault(this.#services, customerId, paymentMethodId);
  }

  createSubscription(customerId: string, devices: number, call: PaymentGatewayCreation) {
    return createSubscription(this.#services, customerId, devices, call.idempotencyKey);
  }

  readSubscription(customerId: string) {
    return readSubscription(this.#services, customerId);
  }

  /**
   * Returns true if an action is allowed. An open invoice blocks all actions. Actions on devices also require a running
   * subscription.
   */
  async allows(customerId: string, action: billing.ReportedAction): Promise<boolean> {
    const { db } = this.#services;
    if ((await db.ledgerInvoice.count({ where: { customerId, status: "open" } })) > 0) return false;
    if (action === "namespace_delete") return true;
    return (await db.ledgerSubscription.count({ where: { customerId, status: { in: RUNNING } } })) > 0;
  }

  reportDevices(customerId: string, devices: number) {
    return reportDevices(this.#services, customerId, devices);
  }

  endSubscription(customerId: string) {
    return endSubscription(this.#services, customerId);
  }

  /** Returns the address of the billing page in the console, because the ledger has no billing page of its own. */
  async portalUrl(_customerId: string, service: URL): Promise<string> {
    return new URL("/settings/billing", service).href;
  }

  upkeep() {
    return closeMonths(this.#services);
  }
}
