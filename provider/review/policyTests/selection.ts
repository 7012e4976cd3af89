import { Access, type AccessDomain, type AccessPolicy, ANY_LOGIN } from "@gatehouse-access/sdk/policy";
import { globFits, globSamples } from "../words/glob.ts";
import type { Network } from "../words/network.ts";
import type { ReadQuery } from "./query.ts";
import type { DeviceQuery } from "./written/query.ts";

/** An address that stands for every IPv6 address that no rule names: of a network for documentation (RFC 3849). */
const ANY_IPV6_ADDRESS = "2001:db8::1";

/** What a query is about: an access of its keys, devices, login names and addresses alone. */
export interface Selection {
  readonly access: Access;
  readonly where: ReadQuery["where"];
  /** What there is none of: `key`, `device`, `address`. */
  readonly missing: readonly string[];
}

/**
 * Narrows an access down to a query, after what the query names was added to its domain.
 * @param networks what else is to be added to the domain
 * @param fits whether an address is meant
 */
export function select(
  { policy, domain }: Pick<Access, "policy" | "domain">,
  query: ReadQuery,
  networks: readonly Network[] = query.from ?? [],
  fits: (address: string) => boolean = (address) => within(query.from, address),
): Selection {
  const { key, login, device = {}, where } = query;
  const extended = extend(domain, login, networks);
  const selected: AccessPolicy = {
    keys: policy.keys.filter(
      ({ name, fingerprint }) => key === undefined || key === fingerprint || globFits(key, name),
    ),
    devices: policy.devices.filter((candidate) => deviceFits(device, candidate)),
    rules: policy.rules,
  };
  const logins = extended.logins.filter((name) => login === undefined || globFits(login, name));
  const addresses = extended.addresses.filter(fits);
  const missing = [
    ...(selected.keys.length === 0 ? ["key"] : []),
    ...(selected.devices.length === 0 ? ["device"] : []),
    ...(addresses.length === 0 ? ["address"] : []),
  ];
  return { access: new Access(selected, { logins, addresses }), where, missing };
}

/** True when one of the networks has the address; undefined stands for all addresses. */
export const within = (networks: readonly Network[] | undefined, address: string): boolean =>
  networks === undefined || networks.some((network) => network.contains(address));

function deviceFits(
  { name, tag, uid }: DeviceQuery,
  device: { readonly name: string; readonly tags: readonly string[]; readonly uid: string },
): boolean {
  return (
    (name === undefined || globFits(name, device.name)) &&
    (tag === undefined || device.tags.includes(tag)) &&
    (uid === undefined || uid === device.uid)
  );
}

function extend(domain: AccessDomain, login: string | undefined, networks: readonly Network[]): AccessDomain {
  const samples = login === undefined || login === "*" ? [] : globSamples(login);
  return {
    logins: [...new Set([...domain.logins, ANY_LOGIN, ...samples])],
    addresses: [
      ...new Set([...domain.addresses, ANY_IPV6_ADDRESS, ...networks.flatMap(({ probes }) => probes)]),
    ],
  };
}
