import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import { ConflictError, isDatabaseError, NotFoundError } from "../../errors.ts";
import type { Context, Handler } from "../../http/handler.ts";
import { callPaymentGateway } from "../../payments/callPaymentGateway.ts";
import type { PaymentGateway } from "../../payments/paymentGateway.ts";
import { billingOf, customerOf } from "./record.ts";
import { recordBilling } from "./trace.ts";

const alreadyCustomer = () => new ConflictError("the namespace already has a customer");

/**
 * Creates the customer at the gateway, then stores the customer's id. If the process stops between these two steps, a
 * retry receives the same customer, because the idempotency key is derived from the tenant id.
 */
export const createCustomer: Handler<PublicOperations["createCustomer"]> = async (context) => {
  const { services, identity } = context;
  const tenantId = identity.tenant;
  if (await billingOf(services, tenantId)) throw alreadyCustomer();
  const namespace = await services.db.namespace.findUnique({
    where: { tenantId },
    select: { name: true, owner: { select: { email: true } } },
  });
  if (!namespace) throw new NotFoundError("no such namespace");
  const { name, owner } = namespace;
  const { id } = await callPaymentGateway(services, (gateway, signal) =>
    gateway.createCustomer(
      { name, email: owner.email },
      { idempotencyKey: `gatehouse:customer:${tenantId}`, signal },
    ),
  );
  try {
    await inTransaction(services, async (tx) => {
      const now = services.now();
      const { maxDevices } = await tx.namespace.findUniqueOrThrow({ where: { tenantId } });
      await tx.billing.create({
        data: { tenantId, customerId: id, freeDevices: maxDevices, createdAt: now, updatedAt: now },
      });
      const inside = { ...context, services: within(services, tx) };
      await recordBilling(inside, "createCustomer", { customer: id });
    });
  } catch (error) {
    throw isDatabaseError(error, "P2002") ? alreadyCustomer() : error;
  }
  return undefined;
};

export const getCustomer: Handler<PublicOperations["getCustomer"]> = async ({ services, identity }) => {
  const { customerId } = await customerOf(services, identity.tenant);
  const customer = await callPaymentGateway(services, (gateway, signal) =>
    gateway.readCustomer(customerId, { signal }),
  );
  return {
    id: customer.id,
    name: customer.name,
    email: customer.email,
    payment_methods: customer.paymentMethods.map((method) => ({
      id: method.id,
      number: method.last4.padStart(16, "x"),
      brand: method.brand,
      exp_month: method.expMonth,
      exp_year: method.expYear,
      cvc: "xxx",
      default: method.isDefault,
    })),
  };
};

type PaymentMethodOperation = "attachPaymentMethod" | "detachPaymentMethod" | "setDefaultPaymentMethod";

/**
 * Returns the handler of an operation on payment methods. If the process stops between the gateway call and the storage
 * of the audit entry, the owner can safely repeat the request.
 */
function forPaymentMethod(id: PaymentMethodOperation & keyof PaymentGateway) {
  return async (context: Context<PublicOperations["attachPaymentMethod"]>): Promise<undefined> => {
    const { services, identity, body } = context;
    const { customerId } = await customerOf(services, identity.tenant);
    await callPaymentGateway(services, (gateway, signal) => gateway[id](customerId, body.id, { signal }));
    await recordBilling(context, id, { payment_method: body.id });
    return undefined;
  };
}

export const attachPaymentMethod = forPaymentMethod("attachPaymentMethod");
export const detachPaymentMethod = forPaymentMethod("detachPaymentMethod");
export const setDefaultPaymentMethod = forPaymentMethod("setDefaultPaymentMethod");

export const createBillingPortal: Handler<PublicOperations["createBillingPortal"]> = async (context) => {
  const { services, identity, request } = context;
  const { customerId } = await customerOf(services, identity.tenant);
  const url = await callPaymentGateway(services, (gateway, signal) =>
    gateway.portalUrl(customerId, request.origin, { signal }),
  );
  return { url };
};
