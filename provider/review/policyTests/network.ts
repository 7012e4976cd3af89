import { BlockList, isIP, isIPv4 } from "node:net";
import { addressText, type NumericAddress, numericAddress } from "./address.ts";

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
  const base = numericAddress(address);
  const prefix = length === undefined ? base.bits : Number(length);
  if (length !== undefined && (!/^[0-9]{1,3}$/.test(length) || prefix > base.bits)) throw notANetwork(text);
  const size = 1n << BigInt(base.bits - prefix);
  if (base.value % size !== 0n) {
    throw new TypeError(`"${text}": bits are set after the prefix; the network's first address is meant`);
  }
  const first = addressText(base) ?? "";
  const list = new BlockList();
  list.addSubnet(first, prefix, family(first));
  const edges = [base.value, base.value + size - 1n, base.value - 1n, base.value + size];
  const probes = [
    ...edges.map((value) => addressText({ bits: base.bits, value })),
    ...lookalikes(base, first, prefix),
  ].filter((probe) => probe !== undefined);
  return {
    text,
    contains: (other) => isIP(other) !== 0 && list.check(other, family(other)),
    probes: [...new Set(probes)],
  };
}

const notANetwork = (text: string) =>
  new TypeError(`"${text}": must be an address or a network, like 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`);

const family = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");

function lookalikes({ bits }: NumericAddress, first: string, prefix: number): string[] {
  if (bits !== 32) return [];
  const octets = first.split(".");
  const significant = octets.slice(0, Math.ceil(prefix / 8));
  const longer = significant.map((octet, place) => octets.with(place, `${octet}0`));
  return [octets.with(0, `1${octets[0]}`), ...longer].map((parts) => parts.join(".")).filter(isIPv4);
}
