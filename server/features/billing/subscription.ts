import { billing, type PublicOperations } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { ConflictError, NotFoundError, PaymentError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { callPaymentGateway } from "../../payments/callPaymentGateway.ts";
import type { Subscription } from "../../payments/paymentGateway.ts";
import type { Services } from "../../services.ts";
import { countAccepted } from "../devices/deviceCounts.ts";
import { customerOf, hasActiveSubscription, storeSubscription } from "./record.ts";
import { recordBilling } from "./trace.ts";

const presentSubscription = (subscription: Subscription): z.output<typeof billing.subscription> => ({
  id: subscription.id,
  active: billing.isActiveSubscription(subscription.status),
  status: subscription.status,
  end_at: subscription.endAt,
  invoices: subscription.invoices.map(({ id, status, currency, amount }) => ({
    id,
    status,
    currency,
    amount,
  })),
});

/**
 * Reads a customer's subscription from the gateway, and stores the state of the subscription in the database.
 * @throws PaymentGatewayError the gateway failed
 */
export async function refreshSubscription(
  services: Services,
  tenantId: string,
  customerId: string,
): Promise<Subscription | null> {
  const subscription = await callPaymentGateway(services, (gateway, signal) =>
    gateway.readSubscription(customerId, { signal }),
  );
  await storeSubscription(services, tenantId, subscription);
  return subscription;
}

export const getSubscription: Handler<PublicOperations["getSubscription"]> = async ({
  services,
  identity,
}) => {
  const { customerId } = await customerOf(services, identity.tenant);
  const subscription = await refreshSubscription(services, identity.tenant, customerId);
  if (!subscription) throw new NotFoundError("the namespace has no subscription");
  return presentSubscription(subscription);
};

/**
 * Checks that a customer has a payment method.
 * @throws PaymentError the customer has no payment method
 */
async function checkPaymentMethods(services: Services, customerId: string): Promise<void> {
  const { paymentMethods } = await callPaymentGateway(services, (gateway, signal) =>
    gateway.readCustomer(customerId, { signal }),
  );
  if (paymentMethods.length === 0)
    throw new PaymentError("the customer has no payment method: attach one first");
}

/**
 * Creates the subscription at the gateway, then stores it. If the process stops or the call times out between these two
 * steps, the service reads the subscription from the gateway later. It does so on a retry, on a request for the
 * subscription, and in the periodic billing job. The idempotency key does not change until the customer has a newer
 * subscription.
 */
export const createSubscription: Handler<PublicOperations["createSubscription"]> = async (context) => {
  const { services, identity } = context;
  const tenantId = identity.tenant;
  const row = await customerOf(services, tenantId);
  const { customerId } = row;
  const last = await refreshSubscription(services, tenantId, customerId);
  if (last && billing.isActiveSubscription(last.status)) {
    if (hasActiveSubscription(row))
      throw new ConflictError("the namespace already has an active subscription");
    // An earlier request created the subscription, but its response was lost.
    await recordBilling(context, "createSubscription", { subscription: last.id });
    return undefined;
  }
  if (last?.invoices.some(({ status }) => status === "open")) {
    throw new PaymentError("the namespace has open invoices: pay them first");
  }
  await checkPaymentMethods(services, customerId);
  const devices = await countAccepted(services.db, tenantId);
  const idempotencyKey = `gatehouse:subscription:${tenantId}:${last?.id ?? "first"}`;
  const subscription = await callPaymentGateway(services, (gateway, signal) =>
    gateway.createSubscription(customerId, devices, { idempotencyKey, signal }),
  );
  await storeSubscription(services, tenantId, subscription);
  await recordBilling(context, "createSubscription", { subscription: subscription.id });
  return undefined;
};
