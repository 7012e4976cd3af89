import { issueText } from "@gatehouse-access/sdk/contract";
import {
  type Access,
  type AccessDevice,
  ANY_IPV6_ADDRESS,
  ANY_LOGIN,
  deciderOf,
  evaluateAccess,
  type NamespacePolicy,
  type Network,
  parseNetwork,
  subjectsOf,
} from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import { globFits, globSamples } from "../access/matching.ts";
import type { AccessQuery, DeviceQuery } from "./api/types.ts";

/** A matcher's validated query, with parsed networks. */
export interface ReadQuery extends Omit<AccessQuery, "from"> {
  readonly from: readonly Network[] | undefined;
}

const text = z.string().min(1, "must not be empty");
const networks = z.union([text, z.array(text).min(1, "must contain at least one network")], {
  error: "must be an address, a network, or a list of addresses and networks",
});
// An undefined field usually comes from a variable that is not set. If undefined fields were ignored, the query would
// match too many logins.
const schema = z.strictObject({
  key: text.exactOptional(),
  user: text.exactOptional(),
  login: text.exactOptional(),
  device: z
    .strictObject({ name: text.exactOptional(), tag: text.exactOptional(), uid: text.exactOptional() })
    .exactOptional(),
  from: networks.exactOptional(),
  where: z
    .custom<NonNullable<AccessQuery["where"]>>((value) => typeof value === "function", "must be a function")
    .exactOptional(),
});

/**
 * Validates a matcher's query, since Node.js does not check the types of a policy file.
 * @throws TypeError with the invalid field
 */
export function readQuery(matcher: string, query: unknown): ReadQuery {
  const result = schema.safeParse(query, { error: issueText });
  if (!result.success) throw misuse(matcher, result.error);
  const { from, ...rest } = result.data;
  return { ...rest, from: from === undefined ? undefined : readNetworks(matcher, from) };
}

/** Reads one network or a list of networks. @throws TypeError with the invalid network */
export function readNetworks(matcher: string, given: unknown): Network[] {
  const result = networks.safeParse(given, { error: issueText });
  if (!result.success) throw misuse(matcher, result.error);
  return [result.data].flat().map(parseNetwork);
}

function misuse(matcher: string, { issues }: z.ZodError): TypeError {
  const faults = issues.map(({ path, message }) =>
    path.length > 0 ? `${path.join(".")} ${message}` : message,
  );
  return new TypeError(`${matcher}(): ${faults.join("; ")}`);
}

/** The part of the evaluated access that a matcher's query matches. */
export interface QueriedAccess {
  /**
   * The access of the matching keys or principals to the matching devices, limited to matching login names and
   * addresses.
   */
  readonly access: Access;
  readonly where: ReadQuery["where"];
  /** The query fields that match nothing: `key` or `user`, `device`, `address`. */
  readonly missing: readonly string[];
}

/**
 * Restricts the evaluated access to the subjects, devices, login names and addresses that a query matches. Also
 * evaluates the login names and addresses in the query.
 * @param networks networks whose addresses are also evaluated
 * @param fits returns true if an address matches the query
 */
export function queriedAccess(
  { policy, evaluated, time }: Pick<Access, "policy" | "evaluated" | "time">,
  query: ReadQuery,
  networks: readonly Network[] = query.from ?? [],
  fits: (address: string) => boolean = (address) => within(query.from, address),
): QueriedAccess {
  const { login, device = {}, where } = query;
  const decider = deciderOf(policy);
  const { selector, basis } = decider.nouns;
  for (const field of ["key", "user"] as const) {
    if (field !== selector && query[field] !== undefined)
      throw new TypeError(`${field}: the namespace authorizes logins by ${basis}; use ${selector}`);
  }
  const subject = query[selector];
  const samples = login === undefined || login === "*" ? [] : globSamples(login);
  const probes = networks.flatMap((network) => network.probes);
  const selected: NamespacePolicy = {
    ...decider.withSubjects(
      ({ id, name }) => subject === undefined || subject === id || globFits(subject, name),
    ),
    devices: policy.devices.filter((candidate) => deviceFits(device, candidate)),
  };
  const logins = [...new Set([...evaluated.logins, ANY_LOGIN, ...samples])].filter(
    (name) => login === undefined || globFits(login, name),
  );
  const addresses = [...new Set([...evaluated.addresses, ANY_IPV6_ADDRESS, ...probes])].filter(fits);
  const missing = [
    ...(subjectsOf(selected).length === 0 ? [selector] : []),
    ...(selected.devices.length === 0 ? ["device"] : []),
    ...(addresses.length === 0 ? ["address"] : []),
  ];
  return { access: evaluateAccess(selected, { logins, addresses }, undefined, time), where, missing };
}

/** Returns true if one of the networks contains the address, or if `networks` is undefined. */
export const within = (networks: readonly Network[] | undefined, address: string): boolean =>
  networks === undefined || networks.some((network) => network.contains(address));

function deviceFits({ name, tag, uid }: DeviceQuery, device: AccessDevice): boolean {
  return (
    (name === undefined || globFits(name, device.name)) &&
    (tag === undefined || device.tags.includes(tag)) &&
    (uid === undefined || uid === device.uid)
  );
}
