import type { Services } from "../../services.ts";
import { isAllowed, paymentRefusal } from "./evaluate.ts";
import { billingOf, hasActiveSubscription } from "./record.ts";

/** The data of a write request that a billing check needs. */
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
 * Returns whether the device would replace an accepted device with the same MAC (rules section 7). A replacement does
 * not change the number of accepted devices.
 */
async function replacesDevice({ db }: Services, tenantId: string, mac: string): Promise<boolean> {
  const replaced = { tenantId, mac, status: "accepted" };
  return mac !== "" && (await db.device.findFirst({ where: replaced, select: { uid: true } })) !== null;
}

/**
 * Checks whether the gateway allows another accepted device.
 * @throws PaymentError the gateway does not allow it
 */
async function checkAcceptance({ services, identity, params }: DeviceRequest): Promise<void> {
  const { tenant: tenantId } = identity;
  if (params.status !== undefined && params.status !== "accept") return;
  const row = await billingOf(services, tenantId);
  if (!hasActiveSubscription(row)) return;
  const device = await services.db.device.findUnique({ where: { uid: params.uid, tenantId } });
  // No check with the gateway is necessary if the number of accepted devices does not increase: the device does not
  // exist (the operation itself reports this), is already accepted, or replaces an accepted device.
  if (!device || device.status === "accepted" || (await replacesDevice(services, tenantId, device.mac)))
    return;
  if (!(await isAllowed(services, row.customerId, "device_accept"))) throw paymentRefusal("device_accept");
}

/**
 * Checks whether the gateway allows the deletion of the namespace.
 * @throws PaymentError the gateway does not allow it
 */
async function checkDeletion({ services, identity }: NamespaceRequest): Promise<void> {
  const row = await billingOf(services, identity.tenant);
  if (row && !(await isAllowed(services, row.customerId, "namespace_delete"))) {
    throw paymentRefusal("namespace_delete");
  }
}

/** The billing check for each operation that the payment gateway may reject, by operation id. */
const CHECKS: Readonly<Record<string, ((request: DeviceRequest) => Promise<void>) | undefined>> = {
  acceptDevice: checkAcceptance,
  updateDeviceStatus: checkAcceptance,
  updateContainerStatus: checkAcceptance,
  deleteNamespace: checkDeletion,
};

/**
 * Checks with the payment gateway whether a write of a cloud instance is allowed, before its transaction starts. The
 * result is not stored. The check causes no charge: customers pay for the number of devices that the billing chore
 * reports.
 * @throws PaymentError the gateway does not allow the write
 * @throws PaymentGatewayError the gateway failed
 */
export async function checkBilling(operation: string, request: BillableRequest): Promise<void> {
  if (request.services.settings.edition !== "cloud") return;
  // The contract guarantees that the operations in `CHECKS` have the parameters and the identity of a `DeviceRequest`.
  await CHECKS[operation]?.(request as DeviceRequest);
}
