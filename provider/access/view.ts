import { Access, type AccessDevice, type AccessDomain, type AccessKey } from "@gatehouse-access/sdk/policy";
import { domainFor, type Estate, inOrder } from "../estate/namespaceState.ts";
import { byText } from "../words/order.ts";
import type { AccessInquiry } from "./inquiry.ts";
import { selectDevices, selectKeys } from "./selectors.ts";

/** A namespace, and the part of it that is asked about. */
export interface AccessView {
  readonly estate: Estate;
  readonly inquiry: AccessInquiry;
  /** Has only the devices that are asked about: a decision about one device does not depend on others. */
  readonly access: Access;
  /** The devices that are asked about, by name. */
  readonly devices: readonly AccessDevice[];
  /** The keys that are asked about, by name. */
  readonly keys: readonly AccessKey[];
  /** In order. Where login names or addresses are asked about, it has no others. */
  readonly domain: AccessDomain;
  /** How the inquiry was understood, as sentences. */
  readonly notes: readonly string[];
}

/**
 * Finds in a namespace what is asked about.
 * @throws AccessInquiryError where a device or key is asked about that the namespace does not have
 */
export function accessView(estate: Estate, inquiry: AccessInquiry): AccessView {
  const { policy } = inOrder(estate);
  const devices = selectDevices(policy.devices, inquiry.devices);
  const keys = selectKeys(policy.keys, inquiry.keys);
  const all = domainFor(estate, [policy]);
  const domain = {
    logins: inquiry.logins.length > 0 ? inquiry.logins.toSorted(byText) : all.logins,
    addresses: inquiry.addresses.length > 0 ? inquiry.addresses.toSorted(byText) : all.addresses,
  };
  return {
    estate,
    inquiry,
    access: new Access({ ...policy, devices: devices.items }, domain),
    devices: devices.items,
    keys: keys.items,
    domain,
    notes: [...devices.notes, ...keys.notes],
  };
}
