import { issueText } from "@gatehouse-access/sdk/contract";
import { Access, type AccessDomain, type AccessPolicy, ANY_LOGIN } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import { globFits, globSamples, type Network, parseNetwork } from "../access/matching.ts";
import type { AccessQuery, DeviceQuery } from "./written/types.ts";

/** A query that was checked, with networks instead of texts. */
export interface ReadQuery extends Omit<AccessQuery, "from"> {
  readonly from: readonly Network[] | undefined;
}

const text = z.string().min(1, "must not be empty");
const networks = z.union([text, z.array(text).min(1, "must name one network or more")], {
  error: "must be an address, a network, or a list of them",
});
// A field that is undefined is mostly a variable that was not set; as if left out, it would mean everything.
const schema = z.strictObject({
  key: text.exactOptional(),
  login: text.exactOptional(),
  device: z
    .strictObject({
      name: text.exactOptional(),
      tag: text.exactOptional(),
      uid: text.exactOptional(),
    })
    .exactOptional(),
  from: networks.exactOptional(),
  where: z
    .custom<NonNullable<AccessQuery["where"]>>((value) => typeof value === "function", "must be a function")
    .exactOptional(),
});

/**
 * Checks a query. Node.js removes the types of a policy file without checking them.
 * @throws TypeError naming the field
 */
export function readQuery(matcher: string, query: unknown): ReadQuery {
  const result = schema.safeParse(query, { error: issueText });
  if (!result.success) throw misuse(matcher, result.error);
  const { from, ...rest } = result.data;
  return { ...rest, from: from === undefined ? undefined : readNetworks(matcher, from) };
}

/**
 * Checks networks.
 * @throws TypeError naming the network that is wrong, and what is allowed
 */
export function readNetworks(matcher: string, given: unknown): Network[] {
  const result = networks.safeParse(given, { error: issueText });
  if (!result.success) throw misuse(matcher, result.error);
  return [result.data].flat().map(parseNetwork);
}

function misuse(matcher: string, { issues }: z.ZodError): TypeError {
  const faults = issues.map(({ path, message }) =>
    path.length > 0 ? `${path.join(".")}: ${message}` : message,
  );
  return new TypeError(`${matcher}(): ${faults.join("; ")}`);
}

/** Stands for every IPv6 address that no rule names. It is of a network for documentation (RFC 3849). */
const ANY_IPV6_ADDRESS = "2001:db8::1";

/** The part of an access that a query is about. */
export interface QueriedAccess {
  /** Has only keys, devices, login names and addresses that fit the query. */
  readonly access: Access;
  readonly where: ReadQuery["where"];
  /** The kinds of which nothing fits: `key`, `device`, `address`. */
  readonly missing: readonly string[];
}

/**
 * Narrows an access down to a query. Login names and addresses that the query names are looked at too.
 * @param networks networks whose addresses are looked at too
 * @param fits whether an address fits the query
 */
export function queriedAccess(
  { policy, domain }: Pick<Access, "policy" | "domain">,
  query: ReadQuery,
  networks: readonly Network[] = query.from ?? [],
  fits: (address: string) => boolean = (address) => within(query.from, address),
): QueriedAccess {
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
