import { z } from "zod";
import { device } from "./devices.ts";
import { defineOperation } from "./operation.ts";
import { dateTime, model, TOTAL_COUNT, uid } from "./schemas.ts";

const part = "Billing";
const BELOW_OWNER = "caller's role is below `owner`";
const REFUSED = "role below `owner`, or the payment gateway refuses the request";
const UNKNOWN = "the namespace has no customer, or the object is unknown to the payment gateway";
const INVALID = "request invalid";
const UNPAID = "there are open invoices, or there is no payment method";
const FAILED = "the payment gateway failed; the body is `{message, code}`";

/** States of a subscription (models section 12). */
export const SUBSCRIPTION_STATUSES = [
  "inactive",
  "active",
  "trialing",
  "incomplete",
  "incomplete_expired",
  "past_due",
  "canceled",
  "unpaid",
  "paused",
  "to_cancel_at_end_of_period",
] as const;
/** A state of a subscription. */
export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];

/**
 * Returns true if billing is active in the state `status`, so that the limits of a free namespace do not apply (models
 * section 4).
 */
export function isActiveSubscription(status: SubscriptionStatus): boolean {
  return ["active", "trialing", "past_due", "to_cancel_at_end_of_period"].includes(status);
}

export const billingError = model(
  "BillingError",
  "The payment gateway failed",
  z.object({
    message: z.string(),
    code: z
      .string()
      .describe(
        "`card_declined`, `expired_card`, `incorrect_cvc`, `incorrect_number`, `processing_error`, or another " +
          "code of the payment gateway",
      ),
  }),
);

export const customer = model(
  "Customer",
  "The customer of a namespace at the payment gateway",
  z.object({
    id: z.string(),
    name: z.string(),
    email: z.string(),
    payment_methods: z.array(
      z.object({
        id: z.string(),
        number: z.string().describe("Card number. Only the last 4 digits are visible"),
        brand: z.string(),
        exp_month: z.int(),
        exp_year: z.int(),
        cvc: z.string().describe("Masked"),
        default: z.boolean(),
      }),
    ),
  }),
);

export const subscription = model(
  "Subscription",
  "A namespace's subscription, with its latest invoices",
  z.object({
    id: z.string(),
    active: z.boolean(),
    status: z.enum(SUBSCRIPTION_STATUSES),
    end_at: z.int().describe("End of the current period, as a Unix timestamp in seconds"),
    invoices: z.array(
      z.object({
        id: z.string(),
        status: z.enum(["draft", "open", "paid", "uncollectible", "voided"]),
        currency: z.string().describe("`usd` or `brl`"),
        amount: z.int().describe("In minor units of the currency, such as cents"),
      }),
    ),
  }),
);

export const namespaceBilling = model(
  "NamespaceBilling",
  "The subscription data of a namespace",
  z.object({
    active: z.boolean().describe("Whether the subscription is active"),
    status: z.enum(SUBSCRIPTION_STATUSES).describe("The status of the subscription"),
    customer_id: z.string().describe("The ID of the customer at the payment gateway"),
    subscription_id: z
      .string()
      .describe("Id of the subscription at the payment gateway; empty without a subscription"),
    current_period_end: z
      .int()
      .describe("End of the current period, as a Unix timestamp in seconds; 0 without a subscription"),
    created_at: dateTime.describe("The time when the customer was created"),
    updated_at: dateTime.describe("The time when the subscription was last changed"),
  }),
);

export const billingEvaluation = model(
  "BillingEvaluation",
  "The actions that the billing status of the namespace currently allows",
  z.object({
    can_accept: z.boolean().describe("Whether the namespace may accept another device"),
    can_connect: z.boolean().describe("Whether users may connect to the namespace's devices"),
  }),
);

export const portalUrl = model(
  "PortalUrl",
  "Address of the page where the owner manages the billing",
  z.object({ url: z.url() }),
);

/** Actions of a namespace that the payment gateway can reject (rules section 18). */
export const REPORTED_ACTIONS = ["device_accept", "namespace_delete"] as const;
/** One of the {@link REPORTED_ACTIONS}. */
export type ReportedAction = (typeof REPORTED_ACTIONS)[number];

/**
 * The query of the operations that check an action with the payment gateway, on the public and the internal listener.
 */
export const report = { action: z.enum(REPORTED_ACTIONS).describe("The planned action") };

const common = { part, edition: "cloud", auth: ["jwt", "apikey"], scope: "namespace" } as const;
const ofOwner = { ...common, minRole: "owner" } as const;
const paymentGatewayErrors = { 403: REFUSED, 404: UNKNOWN, 424: FAILED };

// A client could send a card number instead of an id. The pattern rejects card numbers before the service processes
// them.
const paymentMethod = z.object({
  id: z
    .string()
    .min(1)
    .max(255)
    .regex(
      /^(?!\d+$)[A-Za-z0-9_-]+$/,
      "must be the gateway's id of a payment method: letters, digits, _ and -",
    )
    .describe("The payment gateway's id of the payment method; never a card number"),
});

const paymentMethodOperation = {
  ...ofOwner,
  method: "POST",
  body: paymentMethod,
  errors: { 400: INVALID, ...paymentGatewayErrors },
  repeatable: true,
} as const;

export const attachPaymentMethod = defineOperation({
  ...paymentMethodOperation,
  id: "attachPaymentMethod",
  summary: "Add a payment method to the namespace's customer. The first payment method becomes the default",
  path: "/api/billing/paymentmethod/attach",
});

export const detachPaymentMethod = defineOperation({
  ...paymentMethodOperation,
  id: "detachPaymentMethod",
  summary: "Remove a payment method. The last payment method of an active subscription cannot be removed",
  path: "/api/billing/paymentmethod/detach",
});

export const setDefaultPaymentMethod = defineOperation({
  ...paymentMethodOperation,
  id: "setDefaultPaymentMethod",
  summary: "Set the payment method for invoices",
  path: "/api/billing/paymentmethod/default",
});

export const choiceDevices = defineOperation({
  ...ofOwner,
  id: "choiceDevices",
  summary:
    "Choose the devices that stay accepted without a subscription. All other devices become pending again",
  method: "POST",
  path: "/api/billing/device-choice",
  body: z.object({
    choices: z
      .array(uid)
      .max(3)
      .meta({ uniqueItems: true })
      .refine((list) => new Set(list).size === list.length, "must not repeat a device"),
  }),
  errors: {
    400: "`choices` is missing, has more than 3 devices, repeats a device, or contains a device that the namespace has not accepted",
    403: BELOW_OWNER,
  },
  repeatable: true,
});

export const getCustomer = defineOperation({
  ...ofOwner,
  id: "getCustomer",
  summary: "Get the namespace's customer with its payment methods",
  method: "GET",
  path: "/api/billing/customer",
  success: { body: customer },
  errors: { 400: INVALID, ...paymentGatewayErrors },
});

export const getSubscription = defineOperation({
  ...ofOwner,
  id: "getSubscription",
  summary: "Get the namespace's subscription with its invoices",
  method: "GET",
  path: "/api/billing/subscription",
  success: { body: subscription },
  errors: { 402: "the payment gateway requires a payment first", ...paymentGatewayErrors },
});

export const getDevicesMostUsed = defineOperation({
  ...ofOwner,
  id: "getDevicesMostUsed",
  summary: "List the three most used accepted devices",
  method: "GET",
  path: "/api/billing/devices-most-used",
  success: { headers: [TOTAL_COUNT], body: z.array(device) },
  errors: { 403: BELOW_OWNER },
});

export const createCustomer = defineOperation({
  ...ofOwner,
  id: "createCustomer",
  summary: "Create the namespace's customer at the payment gateway",
  method: "POST",
  path: "/api/billing/customer",
  errors: { 400: INVALID, ...paymentGatewayErrors, 409: "the namespace already has a customer" },
});

export const createSubscription = defineOperation({
  ...ofOwner,
  id: "createSubscription",
  summary:
    "Create a subscription for the namespace. The namespace can then accept any number of devices, and " +
    "pays for each device",
  method: "POST",
  path: "/api/billing/subscription",
  errors: {
    400: INVALID,
    402: UNPAID,
    ...paymentGatewayErrors,
    409: "the namespace already has an active subscription",
  },
});

export const createBillingPortal = defineOperation({
  ...ofOwner,
  id: "createBillingPortal",
  summary: "Get the address of the page where the owner manages payment methods and invoices",
  method: "POST",
  path: "/api/billing/portal",
  auth: ["jwt"],
  success: { body: portalUrl },
  errors: { 403: BELOW_OWNER, 404: "the namespace has no customer", 424: FAILED },
  repeatable: true,
});

// The next two operations are for end users. The internal listener has separate operations with the same paths
// (internal.ts).
export const evaluateBilling = defineOperation({
  ...common,
  id: "evaluateBilling",
  summary:
    "Check whether billing allows the namespace to accept another device, and whether it allows users to " +
    "connect to the namespace's devices",
  method: "POST",
  path: "/api/billing/evaluate",
  aliases: ["/internal/billing/evaluate"],
  auth: ["jwt", "apikey", "internal"],
  minRole: "observer",
  success: { body: billingEvaluation },
  errors: { 400: INVALID, ...paymentGatewayErrors, 403: "the payment gateway refuses the request" },
  repeatable: true,
});

export const reportBilling = defineOperation({
  ...common,
  id: "reportBilling",
  summary: "Check whether billing allows an action. The check causes no charge",
  method: "POST",
  path: "/api/billing/report",
  aliases: ["/internal/billing/report"],
  auth: ["jwt", "apikey", "internal"],
  minRole: "operator",
  query: report,
  errors: {
    400: "`action` neither `device_accept` nor `namespace_delete`",
    402: "billing refuses the action",
    ...paymentGatewayErrors,
    403: "role below `operator`, or the payment gateway refuses the request",
  },
  repeatable: true,
});
