import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Length of the IPv6 prefix of one site or household, in bits (RFC 6177). */
const SITE_BITS = 64;

/**
 * Parses an IP address. Node's `isIP` checks the string first, because `ipaddr.js` also accepts `127.1` and
 * `0x7f000001`.
 */
function read(text: string): Address | undefined {
  const kind = isIP(text);
  if (kind === 0) return undefined;
  if (kind === 4) return ipaddr.parse(text);
  // `URL` writes every group of the address in hexadecimal. Without this conversion, `ipaddr.js` would parse
  // `::127.0.0.1` as the mapped IPv4 address `::ffff:127.0.0.1`, which is a different address.
  return ipaddr.process(new URL(`http://[${text.replace(/%.*$/s, "")}]`).hostname.slice(1, -1));
}

/**
 * Returns the normal form of an IP address: lower case, IPv6 shortened and without a zone, mapped IPv4 as IPv4. Returns
 * undefined if the string is not an IP address.
 */
export function normalAddress(text: string): string | undefined {
  return read(text)?.toString();
}

/**
 * Returns the network that one client controls: an IPv4 address, or the /64 of an IPv6 address. Within a /64, a client
 * can change its address with every request. Returns any other string unchanged.
 */
export function networkOf(address: string): string {
  const parsed = read(address);
  if (parsed === undefined || parsed.kind() === "ipv4") return address;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${SITE_BITS}`)}/${SITE_BITS}`;
}

/** Returns true for an address that only this machine can reach. */
export function isLoopback(address: string): boolean {
  return read(address)?.range() === "loopback";
}

/**
 * Returns true for an address of the public internet. Returns false for private networks, link-local, loopback and test
 * ranges.
 */
export function isPublic(address: string): boolean {
  return read(address)?.range() === "unicast";
}

/**
 * Returns the normal form of an address or of a range such as `10.0.0.0/8`. Returns undefined for any other string. A
 * range of mapped IPv4 addresses becomes a range of IPv4 addresses.
 */
export function normalRange(text: string): string | undefined {
  const [, base = text, length] = /^([^/]*)\/(\d{1,3})$/.exec(text) ?? [];
  const address = read(base);
  if (address === undefined || length === undefined) return address?.toString();
  const mapped = isIP(base) === 6 && address.kind() === "ipv4";
  const bits = Number(length) - (mapped ? 96 : 0);
  if (bits < 0 || bits > (address.kind() === "ipv4" ? 32 : 128)) return undefined;
  return `${address}/${bits}`;
}

/** Returns a function that tests whether an address equals the given address or is in the given range. */
export function addressMatcher(ranges: readonly string[]): (address: string) => boolean {
  const parsed = ranges.map((range) => {
    if (range.includes("/")) return ipaddr.parseCIDR(range);
    const address = ipaddr.parse(range);
    return [address, address.kind() === "ipv4" ? 32 : 128] satisfies [Address, number];
  });
  return (text) => {
    const address = parsed.length === 0 ? undefined : read(text);
    return address !== undefined && parsed.some((range) => within(address, range));
  };
}

function within(address: Address, [base, bits]: [Address, number]): boolean {
  // `ipaddr.js` throws if one address is IPv4 and the other is IPv6.
  return address.kind() === base.kind() && address.match(base, bits);
}
