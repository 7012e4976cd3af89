import {
  Access,
  type AccessDevice,
  type AccessDomain,
  type AccessKey,
  domainOf,
} from "@gatehouse-access/sdk/policy";
import type { Estate } from "../estate.ts";
import { byText } from "../words/order.ts";
import type { AccessQuery } from "./query.ts";
import { selectDevices, selectKeys } from "./selectors.ts";

/** A namespace, and the part of it that is asked about. */
export interface AccessView {
  readonly estate: Estate;
  readonly query: AccessQuery;
  /** Of the devices asked about alone: what is decided about one does not depend on others. */
  readonly access: Access;
  /** Asked about, by name. */
  readonly devices: readonly AccessDevice[];
  /** Asked about, by name. */
  readonly keys: readonly AccessKey[];
  /** In order. Login names or addresses that are asked about are the whole of theirs. */
  readonly domain: AccessDomain;
  /** How the question was understood, as sentences. */
  readonly notes: readonly string[];
}

/**
 * Finds in a namespace what is asked about.
 * @throws AccessQueryError when a device or key is asked about that the namespace does not have
 */
export function accessView(estate: Estate, query: AccessQuery): AccessView {
  const devices = selectDevices(estate.policy.devices.toSorted(byNameThen("uid")), query.devices);
  const keys = selectKeys(estate.policy.keys.toSorted(byNameThen("fingerprint")), query.keys);
  const all = domainOf([estate.policy], { logins: estate.seen.logins, addresses: estate.seen.addresses });
  const domain = {
    logins: [...(query.logins.length > 0 ? query.logins : all.logins)].sort(byText),
    addresses: [...(query.addresses.length > 0 ? query.addresses : all.addresses)].sort(byText),
  };
  return {
    estate,
    query,
    access: new Access({ ...estate.policy, devices: devices.items }, domain),
    devices: devices.items,
    keys: keys.items,
    domain,
    notes: [...devices.notes, ...keys.notes],
  };
}

const byNameThen =
  <Id extends string>(id: Id) =>
  (left: { name: string } & Record<Id, string>, right: { name: string } & Record<Id, string>): number =>
    byText(left.name, right.name) || byText(left[id], right[id]);
