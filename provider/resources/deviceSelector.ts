import { devices, uid } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { type Device, deviceKey, devicesByKey } from "../service/listings.ts";
import { output, required } from "./definition.ts";

/** The input for the device that a resource is about. */
export const deviceInput = required(z.string().min(1).max(64), {
  description: "The device: its uid, MAC address or name. A MAC or name follows a device that enrolls again.",
  replaces: true,
  canonical: (selector) => selector.toLowerCase(),
  // A name or MAC address of a device that waits for its acceptance means another one, once one is accepted.
  sameAs: (state, selector) =>
    (state.deviceStatus ?? state.status ?? "accepted") === "accepted" &&
    deviceKeys({
      uid: String(state.uid),
      mac: String(state.mac),
      name: String(state.deviceName ?? state.name),
    }).includes(deviceKey(selector)),
});

/** The outputs of a resource that is about a part of a device. */
export const deviceOutputs = {
  uid: output(uid, { description: "The device's uid." }),
  mac: output(z.string(), { description: "The device's MAC address." }),
  deviceName: output(devices.deviceName, { description: "The device's name." }),
  deviceStatus: output(z.string(), {
    description: "Whether the device is accepted, pending or rejected: logins reach accepted ones alone.",
  }),
};

/** The values of namespace, {@link deviceInput} and {@link deviceOutputs} in a state. */
export const deviceState = (
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

/** Warns of a name or a MAC address that means a device which waits for its acceptance. */
export const pendingWarning = ({
  device,
  uid,
  deviceStatus,
}: Readonly<Record<string, unknown>>): string | undefined =>
  deviceStatus !== "pending" || device === uid ? undefined : pendingText(String(device));

/** What to know of a selector that means a device which nobody has accepted. */
export const pendingText = (selector: string): string =>
  `"${selector}" means a device that nobody has accepted, and anybody who knows the namespace can enroll one that says so; when one is accepted, the next run that reads the devices moves to it`;

/**
 * The device that a selector means.
 * @throws Error naming the resource, when the namespace has none
 */
export async function deviceOf(opened: TenantClient, selector: string, resource: string): Promise<Device> {
  const device = await opened.devices.find(deviceKey(selector));
  if (device) return device;
  throw new ResourceError(resource, {
    code: "object_not_found",
    field: ["device"],
    value: selector,
    detail: said`the namespace ${opened.tenant} has no device "${selector}"`,
    remedy: said`give a uid, a MAC address or a name`,
  });
}

/** The id, as tenant/uid, of the device that a selector means; undefined where the namespace has none. */
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
 * All devices of a namespace, each with the shortest selector that means it: its name, else its MAC address, else its
 * uid. Several devices may have one name or MAC address, or none.
 */
export function selectorsOf(devices: readonly Device[]): Followed[] {
  const byKey = devicesByKey(devices);
  return devices.map((device) => {
    const means = (selector: string) =>
      deviceInput.schema.safeParse(selector).success && byKey.get(deviceKey(selector))?.uid === device.uid;
    const selector = [device.name.toLowerCase(), device.identity.mac.toLowerCase()].find(means);
    return { device, selector: selector ?? device.uid };
  });
}

/** A device, and the selector that a state holds for it. */
export interface Followed {
  readonly device: Device;
  readonly selector: string;
}

/**
 * The device with this uid, or if that is gone, the one that the selector means today. If the selector means another
 * accepted device by now, the device is held by its uid instead: then the program, which still has the selector,
 * differs from the state, and the next up moves to the other device. A device that waits for its acceptance may have any
 * name and MAC address, so that an accepted one of them comes first.
 */
export async function followDevice(
  { devices }: TenantClient,
  uid: string,
  selector: string = uid,
): Promise<Followed | undefined> {
  const same = await devices.find(uid);
  if (same?.status === "accepted" && isMeant(same, selector)) return { device: same, selector };
  const meant = selector === uid ? undefined : await devices.find(deviceKey(selector));
  if (!same) return meant && { device: meant, selector };
  const isAnother = meant !== undefined && meant.uid !== uid && meant.status === "accepted";
  return { device: same, selector: isAnother ? uid : selector };
}

const isMeant = ({ uid, identity: { mac }, name }: Device, selector: string) =>
  deviceKeys({ uid, mac, name }).includes(deviceKey(selector));
