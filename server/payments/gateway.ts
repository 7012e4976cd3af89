import type { billing } from "@gatehouse-access/sdk/contract";

/** What may be shown of a way to pay. There is no card's number in the service, and no cvc. */
export interface PaymentMethod {
  /** The gateway's id, which the owner's browser got from it. */
  readonly id: string;
  readonly brand: string;
  readonly last4: string;
  /** 1 to 12. */
  readonly expMonth: number;
  readonly expYear: number;
  /** The one that invoices are paid with. */
  readonly isDefault: boolean;
}

/** Who pays for a namespace. */
export interface Customer {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly paymentMethods: readonly PaymentMethod[];
}

/** What is to be paid for a period. */
export interface Invoice {
  readonly id: string;
  readonly status: "draft" | "open" | "paid" | "uncollectible" | "voided";
  readonly currency: "usd" | "brl";
  /** In hundredths of the currency, a whole number. */
  readonly amount: number;
}

/** A customer's present subscription, or its last one. */
export interface Subscription {
  readonly id: string;
  readonly status: billing.SubscriptionStatus;
  /** Unix second at which the present period ends. */
  readonly endAt: number;
  /** All that are open, and the latest others; those of earlier subscriptions too. At most 100, the latest first. */
  readonly invoices: readonly Invoice[];
}

/** What comes with every call. */
export interface GatewayCall {
  /** Aborted when the service waits no longer; what was asked for may be done all the same. */
  readonly signal: AbortSignal;
}

/** What comes with a call that makes something. */
export interface GatewayCreation extends GatewayCall {
  /** The same key, at whatever time, means the same thing: it is answered, and made once. */
  readonly idempotencyKey: string;
}

/**
 * The port to whoever takes the money: `docs/billing.md` says how to write one, and what is called when. All of it may
 * be called at the same time by several processes, never inside of a database transaction, and again after an unclear
 * end. What is not a creation sets a state, so that a second call changes nothing more.
 *
 * A method rejects with NotFoundError for an object that the gateway does not have, ForbiddenError for what it does
 * not do, PaymentError for what it does not do before it is paid, ConflictError for a second subscription, and
 * GatewayError with a code for what went wrong with a payment method. Any other rejection, and no answer in time, counts as `processing_error`; it is logged, so that
 * errors must hold no secrets.
 */
export interface BillingGateway {
  /** Makes the customer of a namespace. */
  createCustomer(
    customer: { readonly name: string; readonly email: string },
    call: GatewayCreation,
  ): Promise<{ readonly id: string }>;
  readCustomer(customerId: string, call: GatewayCall): Promise<Customer>;
  /** Gives the customer a payment method; the first one becomes the default. One that it has stays as it is. */
  attachPaymentMethod(customerId: string, paymentMethodId: string, call: GatewayCall): Promise<void>;
  /** Takes it away; the default passes to another one. */
  detachPaymentMethod(customerId: string, paymentMethodId: string, call: GatewayCall): Promise<void>;
  setDefaultPaymentMethod(customerId: string, paymentMethodId: string, call: GatewayCall): Promise<void>;
  /**
   * Begins a subscription. The service asks only for customers with a payment method, without open invoices and
   * without an active subscription.
   * @param devices accepted devices at this moment
   */
  createSubscription(customerId: string, devices: number, call: GatewayCreation): Promise<Subscription>;
  /** The present subscription, else the last one; null for a customer that never had one. */
  readSubscription(customerId: string, call: GatewayCall): Promise<Subscription | null>;
  /** Whether an action is let through. A question: nothing is booked, and what was allowed may not happen. */
  allows(customerId: string, action: billing.ReportedAction, call: GatewayCall): Promise<boolean>;
  /** Tells how many devices are accepted now; about every ten minutes, while the subscription is active. */
  reportDevices(customerId: string, devices: number, call: GatewayCall): Promise<void>;
  /** Ends the subscription at once, if there is one: the namespace was deleted. What was used is still to be paid. */
  endSubscription(customerId: string, call: GatewayCall): Promise<void>;
  /**
   * Where the customer manages its billing, an address for a browser.
   * @param service where browsers reach this service
   */
  portalUrl(customerId: string, service: URL, call: GatewayCall): Promise<string>;
  /** The gateway's own repeated work, about every ten minutes; nothing where it does that elsewhere. */
  upkeep(): Promise<void>;
}
