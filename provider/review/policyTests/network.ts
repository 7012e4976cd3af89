import { BlockList, isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";
import { neighbourOf, readAddress } from "./address.ts";

const V4 = { version: ipaddr.IPv4, bits: 32 };
const V6 = { version: ipaddr.IPv6, bits: 128 };

/** An address or a network of client addresses. */
export interface Network {
  readonly text: string;
  contains(address: string): boolean;
  /**
   * Addresses that show whether a policy keeps to the network: its first and last one, those just outside of it, and
   * of IPv4 those that a pattern for it lets in where it has no anchor or no end (`10\.1` finds 110.1.0.0 and
   * 10.10.0.0 too).
   */
  readonly probes: readonly string[];
}

/**
 * Reads an address, or a network in CIDR notation.
 * @throws TypeError for all else, and when bits are set after the prefix
 */
export function parseNetwork(text: string): Network {
  const [address = "", length, ...more] = text.split("/");
  if (isIP(address) === 0 || more.length > 0) throw notANetwork(text);
  const base = readAddress(address);
  const { version, bits } = base.kind() === "ipv4" ? V4 : V6;
  const prefix = length === undefined ? bits : Number(length);
  if (length !== undefined && (!/^[0-9]{1,3}$/.test(length) || prefix > bits)) throw notANetwork(text);
  const first = base.toString();
  const cidr = `${first}/${prefix}`;
  if (version.networkAddressFromCIDR(cidr).toString() !== first) {
    throw new TypeError(`"${text}": bits are set after the prefix; the network's first address is meant`);
  }
  const last = version.broadcastAddressFromCIDR(cidr);
  const list = new BlockList();
  list.addSubnet(first, prefix, family(first));
  const edges = [base, last, neighbourOf(base, -1), neighbourOf(last, 1)];
  return {
    text,
    contains: (other) => isIP(other) !== 0 && list.check(other, family(other)),
    probes: [...new Set([...edges.flatMap((edge) => edge?.toString() ?? []), ...lookalikes(first, prefix)])],
  };
}

const notANetwork = (text: string) =>
  new TypeError(`"${text}": must be an address or a network, like 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`);

const family = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");

function lookalikes(first: string, prefix: number): string[] {
  if (!isIPv4(first)) return [];
  const octets = first.split(".");
  const significant = octets.slice(0, Math.ceil(prefix / 8));
  const longer = significant.map((octet, place) => octets.with(place, `${octet}0`));
  return [octets.with(0, `1${octets[0]}`), ...longer].map((parts) => parts.join(".")).filter(isIPv4);
}
