import { devices, uid } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { output, required } from "../model/definition.ts";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { type Device, deviceKey, devicesByKey } from "../service/listings.ts";

/** The input that selects the device of a resource. */
export const deviceInput = required(z.string().min(1).max(64), {
  description:
    "The UID, MAC address or name of the device. A MAC address or name also selects the device after it has enrolled again.",
  replaces: true,
  isLocal: true,
  canonical: (selector) => selector.toLowerCase(),
  // Two selectors are equal only if they select the same accepted device. A pending device does not count, because its
  // name or MAC address selects another device as soon as that other device is accepted.
  sameAs: (state, selector) =>
    (state.deviceStatus ?? state.status ?? "accepted") === "accepted" &&
    deviceKeys({
      uid: String(state.uid),
      mac: String(state.mac),
      name: String(state.deviceName ?? state.name),
    }).includes(deviceKey(selector)),
});

/** The outputs of a resource that manages a single aspect of a device, such as its tags. */
export const deviceOutputs = {
  uid: output(uid, { description: "The UID of the device." }),
  mac: output(z.string(), { description: "The MAC address of the device." }),
  deviceName: output(devices.deviceName, { description: "The name of the device." }),
  deviceStatus: output(z.string(), {
    description:
      "The status of the device: `accepted`, `pending` or `rejected`. Users can log in to accepted devices only.",
  }),
};

/** Returns the values of the namespace, {@link deviceInput} and {@link deviceOutputs} for a state. */
export const deviceValues = (
  tenant: string,
  selector: string,
  { uid, identity: { mac }, name, status }: Device,
) => ({
  tenant,
  device: selector,
  uid,
  mac: mac.toLowerCase(),
  deviceName: name,
  deviceStatus: status,
});

const deviceKeys = ({ uid, mac, name }: { uid: string; mac: string; name: string }) => [
  uid,
  deviceKey(mac.toLowerCase()),
  deviceKey(name.toLowerCase()),
];

/** Returns a warning if a name or MAC address selects a pending device. */
export const pendingWarning = ({
  device,
  uid,
  deviceStatus,
}: Readonly<Record<string, unknown>>): string | undefined =>
  deviceStatus !== "pending" || device === uid ? undefined : pendingText(String(device));

/** Returns the warning about a selector that matches a pending device. */
export const pendingText = (selector: string): string =>
  `"${selector}" matches a device that is not accepted yet. Any client that knows the namespace ID can enroll a device with this name or MAC address. When such a device is accepted, the next run that reads the devices switches to it`;

/**
 * Returns the device that a selector matches.
 * @throws Error with the resource's name if the namespace has no such device
 */
export async function deviceOf(opened: TenantClient, selector: string, resource: string): Promise<Device> {
  const device = await opened.devices.find(deviceKey(selector));
  if (device) return device;
  throw new ResourceError(resource, {
    code: "object_not_found",
    field: ["device"],
    value: selector,
    detail: said`the namespace ${opened.tenant} has no device "${selector}"`,
    remedy: said`set a UID, a MAC address or a name`,
  });
}

/**
 * Returns the id (`tenant/uid`) of the device that a selector matches, or undefined if the namespace has no such
 * device.
 */
export async function idOfDevice(
  connection: Connection,
  tenant: string,
  selector: string,
): Promise<string | undefined> {
  const { devices } = await connection.tenant(tenant);
  const device = await devices.find(deviceKey(selector.toLowerCase()));
  return device && `${tenant}/${device.uid}`;
}

/**
 * Returns all devices of a namespace, each with the most readable selector that matches it: the name, the MAC address
 * or the uid. Several devices can share a name or MAC address. A device can also lack a name or MAC address.
 */
export function selectorsOf(devices: readonly Device[]): Followed[] {
  const byKey = devicesByKey(devices);
  return devices.map((device) => {
    const isUnique = (selector: string) =>
      deviceInput.schema.safeParse(selector).success && byKey.get(deviceKey(selector))?.uid === device.uid;
    const selector = [device.name.toLowerCase(), device.identity.mac.toLowerCase()].find(isUnique);
    return { device, selector: selector ?? device.uid };
  });
}

/** A device and the selector for it in a state. */
export interface Followed {
  readonly device: Device;
  readonly selector: string;
}

/**
 * Returns the device with this uid, and the selector for the state. If the device no longer exists, returns the device
 * that the selector matches now. If the selector matches a different, accepted device, the returned selector is the
 * uid. The state then differs from the program's selector, and the next `up` switches the resource to the other device.
 * A pending device never causes this switch, because any client can enroll a device with any name and MAC address.
 */
export async function followDevice(
  { devices }: TenantClient,
  uid: string,
  selector: string = uid,
): Promise<Followed | undefined> {
  const same = await devices.find(uid);
  if (same?.status === "accepted" && matchesSelector(same, selector)) return { device: same, selector };
  const selected = selector === uid ? undefined : await devices.find(deviceKey(selector));
  if (!same) return selected && { device: selected, selector };
  const isAnother = selected !== undefined && selected.uid !== uid && selected.status === "accepted";
  return { device: same, selector: isAnother ? uid : selector };
}

const matchesSelector = ({ uid, identity: { mac }, name }: Device, selector: string) =>
  deviceKeys({ uid, mac, name }).includes(deviceKey(selector));
