import {
  Access,
  type AccessDevice,
  type AccessDomain,
  type AccessKey,
  ANY_ADDRESS,
  ANY_LOGIN,
} from "@gatehouse-access/sdk/policy";
import { domainFor, type Estate, inOrder } from "../estate/namespaceState.ts";
import { byText, counted, listText, printable } from "../words.ts";
import { type AccessInquiry, selectDevices, selectKeys } from "./inquiry.ts";

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

/** What was looked at, and how the inquiry was understood: lines for people. */
export function domainLines({ estate, inquiry, devices, keys, domain, notes }: AccessView): string[] {
  const { logins, addresses } = domain;
  const sources = `by patterns, and ${counted(estate.seen.sessions, "session")} of late`;
  const loginSource = inquiry.logins.length > 0 ? "as asked" : sources;
  const addressSource = inquiry.addresses.length > 0 ? "as asked" : sources;
  const standIn = addresses.includes(ANY_ADDRESS)
    ? `; ${ANY_ADDRESS} stands for every address that no rule names`
    : "";
  const anyLogin = logins.includes(ANY_LOGIN)
    ? `; ${ANY_LOGIN} stands for every login name that no pattern names`
    : "";
  return [
    `Namespace ${estate.tenant}: ${part(keys, estate.policy.keys, "key")}, ` +
      `${part(devices, estate.policy.devices, "accepted device")}, ${counted(estate.policy.rules.length, "firewall rule")}`,
    `${counted(logins.length, "login name")} (${loginSource}): ${listText(logins)}${anyLogin}`,
    `${addresses.length} ${addresses.length === 1 ? "address" : "addresses"} (${addressSource}): ${listText(addresses)}${standIn}`,
    ...notes,
  ].map(printable);
}

function part(asked: readonly unknown[], all: readonly unknown[], what: string): string {
  return asked.length === all.length
    ? counted(all.length, what)
    : `${asked.length} of ${counted(all.length, what)}`;
}

/** What could not be read and so is missing in the answer: lines for people. */
export const unknownLines = ({ estate }: AccessView): string[] =>
  [...estate.unseen, ...estate.unknown].map((sentence) => printable(`Not known: ${sentence}`));
