import { isIPv4 } from "node:net";

const GROUP_BITS = 16n;
const V4_BITS = 32n;
/** What the first 96 bits of an IPv4 address mapped into IPv6 are. */
const MAPPED = 0xffffn;

/** An address as the number that it is. */
export interface NumericAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/**
 * Reads an address that `isIP` takes; IPv4 mapped into IPv6 is IPv4, as the firewall sees it (rules section 14).
 * @throws TypeError for one with a zone, which only its own host understands
 */
export function numericAddress(text: string): NumericAddress {
  if (isIPv4(text)) {
    return { bits: 32, value: text.split(".").reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n) };
  }
  if (text.includes("%")) throw new TypeError(`${text}: must have no zone`);
  // A URL brings every spelling into one: eight groups of hexadecimal digits, the zeros in one gap.
  const [head = "", tail = ""] = new URL(`http://[${text}]`).hostname.slice(1, -1).split("::");
  const [before, after] = [head, tail].map((part) => part.split(":").filter(Boolean));
  const gap = Array.from({ length: 8 - (before?.length ?? 0) - (after?.length ?? 0) }, () => "0");
  const value = [...(before ?? []), ...gap, ...(after ?? [])].reduce(
    (sum, group) => (sum << GROUP_BITS) | BigInt(`0x${group}`),
    0n,
  );
  if (value >> V4_BITS === MAPPED) return { bits: 32, value: value & ((1n << V4_BITS) - 1n) };
  return { bits: 128, value };
}

/** The address's usual text; undefined for a number that is none. */
export function addressText({ bits, value }: NumericAddress): string | undefined {
  if (value < 0n || value >> BigInt(bits) !== 0n) return undefined;
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join(".");
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((value >> (GROUP_BITS * BigInt(7 - index))) & 0xffffn).toString(16),
  );
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
