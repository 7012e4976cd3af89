import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

/** An address as a program reads it. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Reads an address that `isIP` takes; IPv4 mapped into IPv6 is IPv4, as the firewall sees it (rules section 14).
 * @throws TypeError for one with a zone, which only its own host understands
 */
export function readAddress(text: string): Address {
  if (isIPv4(text)) return ipaddr.parse(text);
  if (text.includes("%")) throw new TypeError(`${text}: must have no zone`);
  // Groups alone, as a URL has them: the library takes `::10.0.0.1` for a mapped address, which it is not.
  return ipaddr.process(new URL(`http://[${text}]`).hostname.slice(1, -1));
}

/** The address before or after one; undefined where that is the first or the last there is. */
export function neighbourOf(address: Address, step: -1 | 1): Address | undefined {
  const bytes = address.toByteArray();
  const full = step === 1 ? 255 : 0;
  const at = bytes.findLastIndex((byte) => byte !== full);
  if (at === -1) return undefined;
  return ipaddr.fromByteArray(bytes.map((byte, place) => (place < at ? byte : (byte + step) & 255)));
}
