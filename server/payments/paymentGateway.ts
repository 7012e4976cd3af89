import type { billing } from "@gatehouse-access/sdk/contract";

/** The fields of a payment method that may be shown. The service has no card number and no cvc. */
export interface PaymentMethod {
  /** The gateway's id, which the gateway gave to the owner's browser. */
  readonly id: string;
  readonly brand: string;
  readonly last4: string;
  /** 1 to 12. */
  readonly expMonth: number;
  readonly expYear: number;
  /** True for the payment method of invoices. */
  readonly isDefault: boolean;
}

/** The payer of a namespace. */
export interface Customer {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly paymentMethods: readonly PaymentMethod[];
}

/** An invoice for one period. */
export interface Invoice {
  readonly id: string;
  readonly status: "draft" | "open" | "paid" | "uncollectible" | "voided";
  readonly currency: "usd" | "brl";
  /** In hundredths of the currency, a whole number. */
  readonly amount: number;
}

/** The present subscription of a customer, or the last one. */
export interface Subscription {
  readonly id: string;
  readonly status: billing.SubscriptionStatus;
  /** Unix second at which the present period ends. */
  readonly endAt: number;
  /** Open invoices and the latest others, of earlier subscriptions too: at most 100, the latest first. */
  readonly invoices: readonly Invoice[];
}

/** Options of every call. */
export interface PaymentGatewayCall {
  /** Aborted when the service stops waiting; the gateway may have done its work all the same. */
  readonly signal: AbortSignal;
}

/** Options of a call that creates something. */
export interface PaymentGatewayCreation extends PaymentGatewayCall {
  /** Calls with the same key, however far apart, create one thing, and all of them return it. */
  readonly idempotencyKey: string;
}

/**
 * The port to a payment gateway: `docs/billing.md` says how to write one, and when each method is called. Several
 * processes may call it at the same time, never inside of a database transaction, and again after an unclear end.
 * Methods that create nothing set a state, so that a second call changes nothing more.
 *
 * A method rejects with NotFoundError for an unknown object, ForbiddenError for an action that it does not support,
 * PaymentError for one that needs a payment first, ConflictError for a second subscription, and PaymentGatewayError with a
 * code for a fault of a payment method. Any other rejection, and a timeout, counts as `processing_error` and is logged,
 * so errors must hold no secrets.
 */
export interface PaymentGateway {
  /** Makes the customer of a namespace. */
  createCustomer(
    customer: { readonly name: string; readonly email: string },
    call: PaymentGatewayCreation,
  ): Promise<{ readonly id: string }>;
  readCustomer(customerId: string, call: PaymentGatewayCall): Promise<Customer>;
  /** Adds a payment method to the customer; the first one becomes the default. An existing one stays as it is. */
  attachPaymentMethod(customerId: string, paymentMethodId: string, call: PaymentGatewayCall): Promise<void>;
  /** Removes a payment method; another one becomes the default. */
  detachPaymentMethod(customerId: string, paymentMethodId: string, call: PaymentGatewayCall): Promise<void>;
  setDefaultPaymentMethod(
    customerId: string,
    paymentMethodId: string,
    call: PaymentGatewayCall,
  ): Promise<void>;
  /**
   * Begins a subscription. The service calls this only for customers with a payment method, without open invoices and
   * without an active subscription.
   * @param devices number of accepted devices at this moment
   */
  createSubscription(
    customerId: string,
    devices: number,
    call: PaymentGatewayCreation,
  ): Promise<Subscription>;
  /** The present subscription, else the last one; null if the customer never had any. */
  readSubscription(customerId: string, call: PaymentGatewayCall): Promise<Subscription | null>;
  /** Whether an action is allowed. Only a question: nothing is booked, and an allowed action may not happen. */
  allows(customerId: string, action: billing.ReportedAction, call: PaymentGatewayCall): Promise<boolean>;
  /** Reports the number of accepted devices; about every ten minutes, while the subscription is active. */
  reportDevices(customerId: string, devices: number, call: PaymentGatewayCall): Promise<void>;
  /** Ends a subscription at once, if there is one, after the namespace was deleted. Past use is still to be paid. */
  endSubscription(customerId: string, call: PaymentGatewayCall): Promise<void>;
  /**
   * Address of a page where the customer manages its billing.
   * @param service address at which browsers reach this service
   */
  portalUrl(customerId: string, service: URL, call: PaymentGatewayCall): Promise<string>;
  /** The gateway's own periodic work, about every ten minutes; empty for a gateway that does it elsewhere. */
  upkeep(): Promise<void>;
}
