import type { billing } from "@gatehouse-access/sdk/contract";

/**
 * The fields of a payment method that the service can show. The service stores neither the card number nor the CVC.
 */
interface PaymentMethod {
  /** Id of the payment method at the gateway. The owner's browser receives this id from the gateway. */
  readonly id: string;
  readonly brand: string;
  readonly last4: string;
  /** Month of the card's expiry, from 1 to 12. */
  readonly expMonth: number;
  readonly expYear: number;
  /** True for the payment method that pays the invoices. */
  readonly isDefault: boolean;
}

/** The customer who pays for a namespace. */
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
  /** Amount in minor units of the currency (for example cents), as a whole number. */
  readonly amount: number;
}

/** The current subscription of a customer. If all subscriptions have ended, the latest subscription. */
export interface Subscription {
  readonly id: string;
  readonly status: billing.SubscriptionStatus;
  /** End of the current period, as Unix time in seconds. */
  readonly endAt: number;
  /**
   * The customer's invoices, latest first, at most 100. Contains all open invoices and the latest other invoices,
   * including invoices of earlier subscriptions.
   */
  readonly invoices: readonly Invoice[];
}

/** Options of every call. */
interface PaymentGatewayCall {
  /**
   * Signal that is aborted when the service no longer waits for the response. The gateway may still complete the call.
   */
  readonly signal: AbortSignal;
}

/** Options of a call that creates an object. */
export interface PaymentGatewayCreation extends PaymentGatewayCall {
  /**
   * Idempotency key. It never expires. If several calls have the same key, only the first call creates an object, and
   * all calls return that object.
   */
  readonly idempotencyKey: string;
}

/**
 * Interface to a payment gateway. `docs/operate/billing.md` describes how to write a gateway and when the service calls
 * each method. Several processes may call a method at the same time. If the result of a call is unknown, a process may
 * repeat the call. A repeated call of a method that creates no object must not change anything. No call runs in a
 * database transaction.
 *
 * A method rejects with one of the following errors. A timeout, or a rejection with any other error, is treated as
 * `processing_error`. The service logs such errors, so they must contain no secrets.
 * - NotFoundError: the object does not exist.
 * - ForbiddenError: the gateway does not support the action.
 * - PaymentError: the customer must pay before the action.
 * - ConflictError: the customer has another subscription.
 * - PaymentGatewayError with a code: the payment method has a fault.
 */
export interface PaymentGateway {
  /** Creates the customer of a namespace. */
  createCustomer(
    customer: { readonly name: string; readonly email: string },
    call: PaymentGatewayCreation,
  ): Promise<{ readonly id: string }>;
  readCustomer(customerId: string, call: PaymentGatewayCall): Promise<Customer>;
  /**
   * Adds a payment method to the customer. The first payment method becomes the default. Has no effect if the customer
   * already has the payment method.
   */
  attachPaymentMethod(customerId: string, paymentMethodId: string, call: PaymentGatewayCall): Promise<void>;
  /**
   * Removes a payment method. If the removed payment method was the default, another payment method becomes the
   * default.
   */
  detachPaymentMethod(customerId: string, paymentMethodId: string, call: PaymentGatewayCall): Promise<void>;
  setDefaultPaymentMethod(
    customerId: string,
    paymentMethodId: string,
    call: PaymentGatewayCall,
  ): Promise<void>;
  /**
   * Creates a subscription. The service calls this method only for customers who have a payment method, no open
   * invoices and no active subscription.
   * @param devices current number of accepted devices
   */
  createSubscription(
    customerId: string,
    devices: number,
    call: PaymentGatewayCreation,
  ): Promise<Subscription>;
  /**
   * Returns the current subscription. If all subscriptions have ended, returns the latest subscription. Returns null if
   * the customer never had a subscription.
   */
  readSubscription(customerId: string, call: PaymentGatewayCall): Promise<Subscription | null>;
  /**
   * Returns true if an action is allowed. The gateway must not record the action, because the service may fail to
   * complete it.
   */
  allows(customerId: string, action: billing.ReportedAction, call: PaymentGatewayCall): Promise<boolean>;
  /** Reports the number of accepted devices. Called about every ten minutes while the subscription is active. */
  reportDevices(customerId: string, devices: number, call: PaymentGatewayCall): Promise<void>;
  /**
   * Immediately ends the customer's subscription, if there is one. Called after the namespace was deleted. The customer
   * must still pay for past use.
   */
  endSubscription(customerId: string, call: PaymentGatewayCall): Promise<void>;
  /**
   * Returns the address of a page where customers manage their billing.
   * @param service address at which browsers reach this service
   */
  portalUrl(customerId: string, service: URL, call: PaymentGatewayCall): Promise<string>;
  /**
   * Runs the gateway's periodic work. Called about every ten minutes. A gateway whose periodic work runs elsewhere does
   * nothing here.
   */
  upkeep(): Promise<void>;
}
