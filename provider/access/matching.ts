import { BlockList, isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * Returns true if the whole text matches the glob, where `*` matches any text and `?` matches one character. The search
 * backtracks only to the last `*`, so the time of the search grows at most with the product of both lengths.
 */
export function globFits(glob: string, text: string): boolean {
  const [wanted, given] = [[...glob], [...text]];
  let at = 0;
  let star: { readonly at: number; taken: number } | undefined;
  for (let place = 0; place < given.length; ) {
    if (wanted[at] === "*") {
      star = { at, taken: place };
      at += 1;
    } else if (wanted[at] === "?" || wanted[at] === given[place]) {
      at += 1;
      place += 1;
    } else if (star) {
      star.taken += 1;
      place = star.taken;
      at = star.at + 1;
    } else {
      return false;
    }
  }
  return wanted.slice(at).every((character) => character === "*");
}

/**
 * Returns sample texts that match the glob: one with each `*` removed, and one with each `*` replaced by a character.
 */
export function globSamples(glob: string): string[] {
  const filled = glob.replaceAll("?", "x");
  return [...new Set([filled.replaceAll("*", ""), filled.replaceAll("*", "x")])].filter(
    (text) => text !== "",
  );
}

const V4 = { version: ipaddr.IPv4, bits: 32 };
const V6 = { version: ipaddr.IPv6, bits: 128 };

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A single client address, or a network (CIDR) of client addresses. */
export interface Network {
  readonly text: string;
  contains(address: string): boolean;
  /**
   * Addresses to evaluate in order to test whether a policy restricts access to the network: the first and last address
   * of the network, and the adjacent addresses outside the network. For IPv4, the list also contains addresses that an
   * unanchored pattern matches by mistake (`10\.1`: 110.1.0.0, 10.10.0.0).
   */
  readonly probes: readonly string[];
}

/**
 * Reads an address, or a network in CIDR notation.
 * @throws TypeError for other texts, and if host bits are set
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
  const network = version.networkAddressFromCIDR(cidr).toString();
  if (network !== first) throw new TypeError(`"${text}" has host bits set; use ${network}/${prefix}`);
  const last = version.broadcastAddressFromCIDR(cidr);
  const list = new BlockList();
  list.addSubnet(first, prefix, family(first));
  const edges = [base, last, neighborOf(base, -1), neighborOf(last, 1)];
  return {
    text,
    contains: (other) => isIP(other) !== 0 && list.check(other, family(other)),
    probes: [...new Set([...edges.flatMap((edge) => edge?.toString() ?? []), ...lookalikes(first, prefix)])],
  };
}

const notANetwork = (text: string) =>
  new TypeError(`"${text}": must be an address or a network, like 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`);

const family = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");

/** Returns the address before or after an address; undefined before the first and after the last possible address. */
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
 * Reads an address that `isIP` accepts. An IPv4-mapped IPv6 address becomes IPv4, as in the firewall (rules section
 * 14).
 * @throws TypeError for an address with a zone, since a zone is only valid on one host
 */
export function readAddress(text: string): Address {
  if (isIPv4(text)) return ipaddr.parse(text);
  if (text.includes("%")) throw new TypeError(`${text}: must have no zone`);
  // The URL parser writes `::10.0.0.1` as `::a00:1`. Otherwise ipaddr.js would treat this address as IPv4-mapped.
  return ipaddr.process(new URL(`http://[${text}]`).hostname.slice(1, -1));
}
