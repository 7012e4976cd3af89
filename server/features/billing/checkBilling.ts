import type { Services } from "../../services.ts";
import { isAllowed, paymentRefusal } from "./evaluate.ts";
import { billingOf, hasActiveSubscription } from "./record.ts";

/** The parts of a request that are known before the transaction of its write begins. */
export interface BillableRequest {
  readonly services: Services;
  readonly identity: unknown;
  readonly params: unknown;
}

interface NamespaceRequest extends BillableRequest {
  readonly identity: { readonly tenant: string };
}

interface DeviceRequest extends NamespaceRequest {
  readonly params: { readonly uid: string; readonly status?: string };
}

/** True if the device would replace an accepted device with the same MAC (rules section 7), adding none. */
async function takesPlace({ db }: Services, tenantId: string, mac: string): Promise<boolean> {
  const former = { tenantId, mac, status: "accepted" };
  return mac !== "" && (await db.device.findFirst({ where: former, select: { uid: true } })) !== null;
}

/** @throws PaymentError the gateway refuses another accepted device */
async function checkAcceptance({ services, identity, params }: DeviceRequest): Promise<void> {
  const { tenant: tenantId } = identity;
  if (params.status !== undefined && params.status !== "accept") return;
  const row = await billingOf(services, tenantId);
  if (!hasActiveSubscription(row)) return;
  const device = await services.db.device.findUnique({ where: { uid: params.uid, tenantId } });
  // The operation itself reports any other fault of the request.
  if (!device || device.status === "accepted" || (await takesPlace(services, tenantId, device.mac))) return;
  if (!(await isAllowed(services, row.customerId, "device_accept"))) throw paymentRefusal("device_accept");
}

/** @throws PaymentError the gateway refuses the deletion of the namespace */
async function checkDeletion({ services, identity }: NamespaceRequest): Promise<void> {
  const row = await billingOf(services, identity.tenant);
  if (row && !(await isAllowed(services, row.customerId, "namespace_delete"))) {
    throw paymentRefusal("namespace_delete");
  }
}

/** Writes that the gateway may refuse, each with its check. */
const CHECKS: Readonly<Record<string, ((request: DeviceRequest) => Promise<void>) | undefined>> = {
  acceptDevice: checkAcceptance,
  updateDeviceStatus: checkAcceptance,
  updateContainerStatus: checkAcceptance,
  deleteNamespace: checkDeletion,
};

/**
 * Asks the payment gateway whether a write of a cloud instance is allowed, before its transaction begins. The answer is
 * not stored: asking books nothing, and customers pay for the devices that the billing chore reports.
 * @throws PaymentError billing refuses
 * @throws PaymentGatewayError the gateway failed
 */
export async function checkBilling(operation: string, request: BillableRequest): Promise<void> {
  if (request.services.settings.edition !== "cloud") return;
  // By the contract these operations have such parameters and such an identity.
  await CHECKS[operation]?.(request as DeviceRequest);
}
