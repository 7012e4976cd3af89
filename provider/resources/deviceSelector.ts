import { or, where } from "@gatehouse-access/sdk";
import { devices as contract, uid } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { output, required } from "../model/fields.ts";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { type Device, type ListingSource, PAGE_SIZE, type Source } from "../service/listings.ts";

const UID = /^[0-9a-f]{64}$/;
const MAC = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/;

/**
 * Returns the lookup key that a device listing uses for a selector. The selector must be in lower case. It is a uid, a
 * MAC address or a device name.
 */
export function deviceKey(selector: string): string {
  if (UID.test(selector)) return selector;
  return MAC.test(selector) ? `mac ${selector.replaceAll("-", ":")}` : `name ${selector}`;
}

/** Returns a device's MAC address in the notation of device listings. */
export const macOf = (device: Pick<Device, "identity">): string =>
  device.identity.mac.toLowerCase().replaceAll("-", ":");

/** Returns the lookup keys of a device in a listing. See {@link deviceKey}. */
export const keysOfDevice = (device: Pick<Device, "uid" | "identity" | "name">): string[] => [
  device.uid,
  `mac ${macOf(device)}`,
  `name ${device.name.toLowerCase()}`,
];

/**
 * Returns the preferred one of two devices with the same name or MAC address. This is the accepted device, or `left` if
 * both or neither are accepted.
 */
const preferredDevice = (left: Device, right: Device): Device =>
  left.status !== "accepted" && right.status === "accepted" ? right : left;

/** Returns an index of the given devices, with the same lookup keys as {@link devices}. */
export function devicesByKey(devices: readonly Device[]): ReadonlyMap<string, Device> {
  const found = new Map<string, Device>();
  for (const device of devices) {
    for (const key of keysOfDevice(device)) found.set(key, preferredDevice(found.get(key) ?? device, device));
  }
  return found;
}

/**
 * The devices of a namespace, by uid, MAC address and name. If several devices have the same name or MAC address, the
 * listing prefers the accepted device.
 */
export const devices: ListingSource<Device> = (client, tenant) => {
  const source: Source<Device> = {
    kind: "Device",
    keysOf: keysOfDevice,
    // The pages are sorted by uid. In the default order, a device that reports to the service while the pages are read
    // would change its position.
    pages: () => client.pages("getDevices", { query: { perPage: PAGE_SIZE, sortBy: "uid", orderBy: "asc" } }),
    among: ([first = "", ...others]) => {
      const ofUid = (uid: string) => where("uid").eq(uid);
      const filter = or(ofUid(first), ...others.map(ofUid));
      return client.pages("getDevices", {
        query: { filter, perPage: PAGE_SIZE, sortBy: "uid", orderBy: "asc" },
      });
    },
    requireReadable: () => client.getNamespace({ params: { tenant } }),
    prefer: preferredDevice,
    look: (key) => (UID.test(key) ? client.getDevice({ params: { uid: key } }) : lookByText(key)),
  };
  async function lookByText(key: string): Promise<Device | undefined> {
    const [kind = "", text = ""] = key.split(" ");
    // The service stores a MAC address in the form that the agent sent: with colons or hyphens, in any letter case.
    const mac = where("identity.mac");
    const filter =
      kind === "mac"
        ? or(mac.contains(text), mac.contains(text.replaceAll(":", "-")))
        : where("name").eq(text);
    const query = { filter, perPage: PAGE_SIZE, sortBy: "uid", orderBy: "asc" } as const;
    let found: Device | undefined;
    for await (const device of client.iterate("getDevices", { query })) {
      if (keysOfDevice(device).includes(key)) found = preferredDevice(found ?? device, device);
    }
    return found;
  }
  return source;
};

/** The input that selects the device of a resource. */
export const deviceInput = required(z.string().min(1).max(64), {
  description:
    "The UID, MAC address or name of the device. A MAC address or name also selects the device after it has enrolled again.",
  replaces: true,
  isLocal: true,
  canonical: (selector) => selector.toLowerCase(),
  // A selector equals the selector in the state only if it also matches the same device, and this device is accepted. A
  // pending device is not sufficient: as soon as another device with the same name or MAC address is accepted, the
  // selector matches that device.
  sameAs: (state, selector) =>
    (state.deviceStatus ?? state.status ?? "accepted") === "accepted" &&
    deviceKeys({
      uid: String(state.uid),
      mac: String(state.mac),
      name: String(state.deviceName ?? state.name),
    }).includes(deviceKey(selector)),
});

/** The outputs of a resource that manages only one aspect of a device, such as its tags. */
export const deviceOutputs = {
  uid: output(uid, { description: "The UID of the device." }),
  mac: output(z.string(), { description: "The MAC address of the device." }),
  deviceName: output(contract.deviceName, { description: "The name of the device." }),
  deviceStatus: output(z.string(), {
    description:
      "The status of the device: `accepted`, `pending` or `rejected`. Users can log in to accepted devices only.",
  }),
};

/**
 * Returns the part of a state that describes the device of a resource: the namespace, and the values of {@link
 * deviceInput} and {@link deviceOutputs}.
 */
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

/** Returns a warning if a name or MAC address selects a pending device, or undefined otherwise. */
export const pendingWarning = ({
  device,
  uid,
  deviceStatus,
}: Readonly<Record<string, unknown>>): string | undefined =>
  deviceStatus !== "pending" || device === uid ? undefined : pendingText(String(device));

/** Returns the warning that a selector matches a pending device. */
export const pendingText = (selector: string): string =>
  `"${selector}" matches a device that is not accepted yet. Any client that knows the namespace ID can enroll a device with this name or MAC address. When such a device is accepted, the next run that reads the devices switches to it`;

/**
 * Returns the device that a selector matches.
 * @throws Error with the resource's name if no device of the namespace matches
 */
export async function deviceOf(opened: TenantClient, selector: string, resource: string): Promise<Device> {
  const device = await opened.listing(devices).find(deviceKey(selector));
  if (device) return device;
  throw new ResourceError(resource, {
    code: "object_not_found",
    field: ["device"],
    value: selector,
    detail: said`The namespace ${opened.tenant} has no device "${selector}"`,
    remedy: said`set a UID, a MAC address or a name`,
  });
}

/**
 * Returns the id (`tenant/uid`) of the device that a selector matches, or undefined if no device of the namespace
 * matches.
 */
export async function idOfDevice(
  connection: Connection,
  tenant: string,
  selector: string,
): Promise<string | undefined> {
  const opened = await connection.tenant(tenant);
  const device = await opened.listing(devices).find(deviceKey(selector.toLowerCase()));
  return device && `${tenant}/${device.uid}`;
}

/**
 * Returns all devices of a namespace, each with a selector that matches only this device. The selector is the device
 * name if possible, otherwise the MAC address, otherwise the uid. Several devices can share a name or MAC address, and
 * a device can lack a name or MAC address.
 */
export function selectorsOf(all: readonly Device[]): Followed[] {
  const byKey = devicesByKey(all);
  return all.map((device) => {
    const isUnique = (selector: string) =>
      deviceInput.schema.safeParse(selector).success && byKey.get(deviceKey(selector))?.uid === device.uid;
    const selector = [device.name.toLowerCase(), device.identity.mac.toLowerCase()].find(isUnique);
    return { device, selector: selector ?? device.uid };
  });
}

/** A device, and the selector for it that a state contains. */
export interface Followed {
  readonly device: Device;
  readonly selector: string;
}

/**
 * Finds the device of a resource. Returns the device with this uid, and the selector for the state. If the device no
 * longer exists, returns the device that the selector matches now. If the device exists, but the selector now matches a
 * different, accepted device, the returned selector is the uid. The state then differs from the program's selector, and
 * the next `up` switches the resource to the other device. A pending device never causes this switch, because any
 * client can enroll a device with any name and MAC address.
 */
export async function followDevice(
  opened: TenantClient,
  uid: string,
  selector: string = uid,
): Promise<Followed | undefined> {
  const listing = opened.listing(devices);
  const same = await listing.find(uid);
  if (same?.status === "accepted" && matchesSelector(same, selector)) return { device: same, selector };
  const selected = selector === uid ? undefined : await listing.find(deviceKey(selector));
  if (!same) return selected && { device: selected, selector };
  const isAnother = selected !== undefined && selected.uid !== uid && selected.status === "accepted";
  return { device: same, selector: isAnother ? uid : selector };
}

const matchesSelector = ({ uid, identity: { mac }, name }: Device, selector: string) =>
  deviceKeys({ uid, mac, name }).includes(deviceKey(selector));
