import type { billing, InternalOperations, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { NotFoundError, PaymentError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { callPaymentGateway } from "../../payments/callPaymentGateway.ts";
import type { Services } from "../../services.ts";
import { countAccepted } from "../devices/deviceCounts.ts";
import { isFull } from "../devices/deviceLimit.ts";
import { billingOf, hasActiveSubscription } from "./record.ts";

/**
 * Reads the device limit of a namespace.
 * @throws NotFoundError the namespace does not exist
 */
async function limitOf({ db }: Services, tenantId: string) {
  const namespace = await db.namespace.findUnique({
    where: { tenantId },
    select: { tenantId: true, maxDevices: true },
  });
  if (!namespace) throw new NotFoundError("no such namespace");
  return namespace;
}

/** Returns true if the gateway allows an action of a customer. */
export function isAllowed(
  services: Services,
  customerId: string,
  action: billing.ReportedAction,
): Promise<boolean> {
  return callPaymentGateway(services, (gateway, signal) => gateway.allows(customerId, action, { signal }));
}

/**
 * Returns true if a free namespace has too many accepted devices. The owner must then choose the devices to keep (rules
 * section 18).
 */
async function isOverLimit({ db }: Services, tenantId: string, maxDevices: number): Promise<boolean> {
  if (maxDevices <= 0) return false;
  return (await countAccepted(db, tenantId)) > maxDevices;
}

async function evaluate(
  services: Services,
  tenantId: string,
): Promise<z.output<typeof billing.billingEvaluation>> {
  const namespace = await limitOf(services, tenantId);
  const row = await billingOf(services, tenantId);
  if (hasActiveSubscription(row)) {
    return { can_accept: await isAllowed(services, row.customerId, "device_accept"), can_connect: true };
  }
  return {
    can_accept: !(await isFull(services, namespace)),
    can_connect: !(await isOverLimit(services, tenantId, namespace.maxDevices)),
  };
}

/**
 * Checks that an action is allowed. Without an active subscription, the device limit of a free namespace applies. Open
 * invoices block the deletion of a customer's namespace.
 * @throws PaymentError the action is not allowed
 */
async function report(
  services: Services,
  tenantId: string,
  action: billing.ReportedAction,
): Promise<undefined> {
  const namespace = await limitOf(services, tenantId);
  const row = await billingOf(services, tenantId);
  if (row && (hasActiveSubscription(row) || action === "namespace_delete")) {
    if (!(await isAllowed(services, row.customerId, action))) throw paymentRefusal(action);
  } else if (action === "device_accept" && (await isFull(services, namespace))) {
    throw new PaymentError(`the namespace can have at most ${namespace.maxDevices} accepted devices`);
  }
  return undefined;
}

/** Returns the error for an action that the gateway rejected. */
export const paymentRefusal = (action: billing.ReportedAction): PaymentError =>
  new PaymentError(`billing does not allow ${action}: invoices are open, or the subscription is not running`);

export const evaluateBilling: Handler<PublicOperations["evaluateBilling"]> = ({ services, identity }) =>
  evaluate(services, identity.tenant);

export const evaluateNamespaceBilling: Handler<InternalOperations["evaluateNamespaceBilling"]> = ({
  services,
  identity,
}) => evaluate(services, identity.tenant);

export const reportBilling: Handler<PublicOperations["reportBilling"]> = ({ services, identity, query }) =>
  report(services, identity.tenant, query.action);

export const reportNamespaceBilling: Handler<InternalOperations["reportNamespaceBilling"]> = ({
  services,
  identity,
  query,
}) => report(services, identity.tenant, query.action);
