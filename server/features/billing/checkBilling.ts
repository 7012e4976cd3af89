import type { Services } from "../../services.ts";
import { isAllowed, paymentRefusal } from "./evaluate.ts";
import { billingOf, hasActiveSubscription } from "./record.ts";

/** The part of a write request that a billing check needs. */
interface BillableRequest {
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

/**
 * Returns true if the device would replace an accepted device with the same MAC address (rules section 7). A
 * replacement does not change the number of accepted devices.
 */
async function replacesDevice({ db }: Services, tenantId: string, mac: string): Promise<boolean> {
  const replaced = { tenantId, mac, status: "accepted" };
  return mac !== "" && (await db.device.findFirst({ where: replaced, select: { uid: true } })) !== null;
}

/**
 * Checks that the gateway allows one more accepted device.
 * @throws PaymentError the gateway rejects the device
 */
async function checkAcceptance({ services, identity, params }: DeviceRequest): Promise<void> {
  const { tenant: tenantId } = identity;
  if (params.status !== undefined && params.status !== "accept") return;
  const row = await billingOf(services, tenantId);
  if (!hasActiveSubscription(row)) return;
  const device = await services.db.device.findUnique({ where: { uid: params.uid, tenantId } });
  // The gateway is not called if the number of accepted devices does not increase. This is the case if the device is
  // already accepted, if it replaces an accepted device, or if it does not exist. The operation itself reports a device
  // that does not exist.
  if (!device || device.status === "accepted" || (await replacesDevice(services, tenantId, device.mac)))
    return;
  if (!(await isAllowed(services, row.customerId, "device_accept"))) throw paymentRefusal("device_accept");
}

/**
 * Checks that the gateway allows the deletion of the namespace.
 * @throws PaymentError the gateway rejects the deletion
 */
async function checkDeletion({ services, identity }: NamespaceRequest): Promise<void> {
  const row = await billingOf(services, identity.tenant);
  if (row && !(await isAllowed(services, row.customerId, "namespace_delete"))) {
    throw paymentRefusal("namespace_delete");
  }
}

/** The billing checks, by operation id. The list contains each operation that the payment gateway may reject. */
const CHECKS: Readonly<Record<string, ((request: DeviceRequest) => Promise<void>) | undefined>> = {
  acceptDevice: checkAcceptance,
  updateDeviceStatus: checkAcceptance,
  updateContainerStatus: checkAcceptance,
  deleteNamespace: checkDeletion,
};

/**
 * Checks with the payment gateway that a write on a cloud instance is allowed. Call this function before the
 * transaction of the write begins. The result is not stored. The check itself costs nothing: customers pay for the
 * number of devices that the periodic billing job reports.
 * @throws PaymentError the gateway does not allow the write
 * @throws PaymentGatewayError the gateway failed
 */
export async function checkBilling(operation: string, request: BillableRequest): Promise<void> {
  if (request.services.settings.edition !== "cloud") return;
  // The contract guarantees that each operation in `CHECKS` has the parameters and the identity of a `DeviceRequest`.
  await CHECKS[operation]?.(request as DeviceRequest);
}
