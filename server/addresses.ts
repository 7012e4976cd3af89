import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Bits of the first part of an IPv6 address that one site or household has to itself (RFC 6177). */
const SITE_BITS = 64;

/** Node's own check comes first: the library also takes `127.1` and `0x7f000001`. */
function read(text: string): Address | undefined {
  const kind = isIP(text);
  if (kind === 0) return undefined;
  if (kind === 4) return ipaddr.parse(text);
  // Groups alone, as a URL has them: the library takes `::127.0.0.1` for a mapped address, which it is not.
  return ipaddr.process(new URL(`http://[${text.replace(/%.*$/s, "")}]`).hostname.slice(1, -1));
}

/**
 * An IP address in its one form: lower case, IPv6 shortened, without a zone; IPv4 that is mapped into IPv6 as
 * IPv4. Undefined for any other text.
 */
export function normalAddress(text: string): string | undefined {
  return read(text)?.toString();
}

/**
 * What one client has for itself: of IPv4 the address, of IPv6 the /64, in which it may choose its address with
 * every request. Text that is no address stays as it is.
 */
export function networkOf(address: string): string {
  const parsed = read(address);
  if (parsed === undefined || parsed.kind() === "ipv4") return address;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${SITE_BITS}`)}/${SITE_BITS}`;
}

/** True for an address that only this machine reaches. */
export function isLoopback(address: string): boolean {
  return read(address)?.range() === "loopback";
}

/** True for an address of the public internet: not of a private network, a link, a machine itself or a test. */
export function isPublic(address: string): boolean {
  return read(address)?.range() === "unicast";
}

/**
 * An address, or a range such as `10.0.0.0/8`, in its one form; undefined for any other text. A range of mapped
 * IPv4 addresses becomes one of IPv4.
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

/** A test whether an address is one of the given ones or lies in one of the given ranges. */
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
  // The library throws when the kinds differ.
  return address.kind() === base.kind() && address.match(base, bits);
}
