import { BlockList, isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

const V4 = { version: ipaddr.IPv4, bits: 32 };
const V6 = { version: ipaddr.IPv6, bits: 128 };

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A single client address, or a network (CIDR) of client addresses. */
export interface Network {
  readonly text: string;
  contains(address: string): boolean;
  /** The first address of the network. */
  readonly first: string;
  /** The first address after the network. Undefined if the network contains the last possible address. */
  readonly next: string | undefined;
  /**
   * Sample addresses that show whether a policy restricts access to the network: the first and last address of the
   * network, and the adjacent addresses outside of the network. For IPv4, the list also contains addresses that an
   * unanchored pattern would match by mistake: 110.1.0.0 and 10.10.0.0 for the pattern `10\.1`.
   */
  readonly probes: readonly string[];
}

/**
 * Parses an address, or a network in CIDR notation.
 * @throws TypeError for other strings, and if host bits are set
 */
export function parseNetwork(text: string): Network {
  const { base, prefix } = partsOf(text, readAddress);
  const first = firstOf(base, prefix);
  if (first.toString() !== base.toString())
    throw new TypeError(`"${text}" has host bits set. Use ${first}/${prefix}.`);
  return newNetwork(text, first, prefix);
}

/**
 * Parses an address or network in an access policy. Ignores host bits, as the server does. Returns undefined for other
 * strings.
 */
export function networkOf(text: string): Network | undefined {
  const entry = entryOf(text);
  return entry && newNetwork(text, entry.first, entry.prefix);
}

/**
 * Returns the canonical form of an address or network in an access policy: `10.1.2.3/8` becomes `10.0.0.0/8`, and
 * `192.0.2.7` becomes `192.0.2.7/32`. Returns undefined for other strings. Also returns undefined for a network of
 * IPv4-mapped addresses, since no client address matches it.
 */
export function networkText(text: string): string | undefined {
  const entry = entryOf(text);
  return entry && !isMapped(entry.first) ? `${entry.first}/${entry.prefix}` : undefined;
}

const isMapped = (address: Address): boolean =>
  address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress();

function entryOf(text: string) {
  try {
    // Servers convert a client address to its IPv4 form, but they do not convert a network. Therefore, a network of
    // IPv4-mapped addresses contains no IPv4 client.
    const { base, prefix } = partsOf(text, text.includes("/") ? readExactAddress : readAddress);
    return { first: firstOf(base, prefix), prefix };
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

function partsOf(text: string, read: (address: string) => Address) {
  const [address = "", length, ...more] = text.split("/");
  if (isIP(address) === 0 || more.length > 0) throw new TypeError(notANetwork(text));
  const base = read(address);
  const { bits } = versionOf(base);
  const prefix = length === undefined ? bits : Number(length);
  if (length !== undefined && (!/^(?:0|[1-9][0-9]{0,2})$/.test(length) || prefix > bits))
    throw new TypeError(notANetwork(text));
  return { base, prefix };
}

const versionOf = (address: Address) => (address.kind() === "ipv4" ? V4 : V6);

const firstOf = (base: Address, prefix: number): Address =>
  versionOf(base).version.networkAddressFromCIDR(`${base}/${prefix}`);

function newNetwork(text: string, base: Address, prefix: number): Network {
  const first = base.toString();
  const last = versionOf(base).version.broadcastAddressFromCIDR(`${first}/${prefix}`);
  const list = new BlockList();
  list.addSubnet(first, prefix, family(first));
  return {
    text,
    first,
    next: neighborOf(last, 1)?.toString(),
    contains(other) {
      // An address with a zone is not in any network.
      if (other.includes("%")) return false;
      const address = other.startsWith("::ffff:") ? readAddress(other).toString() : other;
      // A BlockList converts an IPv4 address to its mapped form before it compares the address with an IPv6 network.
      return isIP(address) !== 0 && family(address) === family(first) && list.check(address, family(first));
    },
    get probes() {
      const edges = [base, last, neighborOf(base, -1), neighborOf(last, 1)];
      return [...new Set([...edges.flatMap((edge) => edge?.toString() ?? []), ...lookalikes(first, prefix)])];
    },
  };
}

/** Returns the error message for a string that is neither an address nor a network. */
export const notANetwork = (text: string): string =>
  `"${text}" must be an address or a network, like 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`;

const family = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");

/**
 * Returns the previous or next address. Returns undefined if there is none: before the first possible address, and
 * after the last one.
 */
function neighborOf(address: Address, step: -1 | 1): Address | undefined {
  const bytes = address.toByteArray();
  const full = step === 1 ? 255 : 0;
  const at = bytes.findLastIndex((byte) => byte !== full);
  if (at === -1) return undefined;
  return ipaddr.fromByteArray(bytes.map((byte, place) => (place < at ? byte : (byte + step) & 255)));
}

function lookalikes(first: string, prefix: number): string[] {
  if (!isIPv4(first)) return [];
  const octets = first.split(".");
  const significant = octets.slice(0, Math.ceil(prefix / 8));
  const longer = significant.map((octet, place) => octets.with(place, `${octet}0`));
  return [octets.with(0, `1${octets[0]}`), ...longer].map((parts) => parts.join(".")).filter(isIPv4);
}

/**
 * Parses an address that `isIP` accepts. Converts an IPv4-mapped IPv6 address to IPv4, as the firewall does (rules
 * section 14).
 * @throws TypeError for an address with a zone, since a zone is only valid on one host
 */
export function readAddress(text: string): Address {
  const address = readExactAddress(text);
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

function readExactAddress(text: string): Address {
  if (isIPv4(text)) return ipaddr.parse(text);
  if (text.includes("%")) throw new TypeError(`${text} must have no zone`);
  // The URL parser converts `::10.0.0.1` to `::a00:1`. Without this conversion, ipaddr.js would treat the address as
  // IPv4-mapped.
  return ipaddr.parse(new URL(`http://[${text}]`).hostname.slice(1, -1));
}
