import { z } from "zod";
import type { TenantClient } from "./connection.ts";
import { required } from "./definition.ts";
import { type Device, deviceKey } from "./listings.ts";

/** The input for the device that a resource is about. */
export const deviceInput = required(z.string().min(1).max(64), {
  description: "The device: its uid, MAC address or name. A MAC or name follows a device that enrols again.",
  replaces: true,
  canonical: (selector) => selector.toLowerCase(),
  sameAs: (state, selector) =>
    deviceKeys({
      uid: String(state.uid),
      mac: String(state.mac),
      name: String(state.deviceName ?? state.name),
    }).includes(deviceKey(selector)),
});

const deviceKeys = ({ uid, mac, name }: { uid: string; mac: string; name: string }) => [
  uid,
  deviceKey(mac.toLowerCase()),
  deviceKey(name.toLowerCase()),
];

/**
 * The device that a selector means.
 * @throws Error naming the resource, when the namespace has none
 */
export async function deviceOf(opened: TenantClient, selector: string, resource: string): Promise<Device> {
  const device = await opened.devices.find(deviceKey(selector));
  if (device) return device;
  throw new Error(
    `${resource}.device: the namespace ${opened.tenant} has no device "${selector}"; give a uid, a MAC address or a name`,
  );
}

/** A device, and the selector that a state holds for it. */
export interface Followed {
  readonly device: Device;
  readonly selector: string;
}

/**
 * The device with this uid, or if that is gone, the one that the selector means today. If the selector means another
 * accepted device by now, the device is held by its uid instead: then the program, which still has the selector,
 * differs from the state, and the next up moves to the other device.
 */
export async function followDevice(
  { devices }: TenantClient,
  uid: string,
  selector: string = uid,
): Promise<Followed | undefined> {
  const same = await devices.find(uid);
  if (same && isMeant(same, selector)) return { device: same, selector };
  const meant = selector === uid ? undefined : await devices.find(deviceKey(selector));
  if (!same) return meant && { device: meant, selector };
  const isAnother = meant !== undefined && meant.uid !== uid && meant.status === "accepted";
  return { device: same, selector: isAnother ? uid : selector };
}

const isMeant = ({ uid, identity: { mac }, name }: Device, selector: string) =>
  deviceKeys({ uid, mac, name }).includes(deviceKey(selector));
