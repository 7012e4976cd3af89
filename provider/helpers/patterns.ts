import { isIPv4 } from "node:net";

/**
 * A pattern that admits exactly these login names: `login("root")` is `^root$`, `login("root", "ana")` is
 * `^(root|ana)$`. Patterns of the service are not anchored: `root` alone admits `notroot` too.
 * @throws TypeError when there is no name, or an empty one
 */
export function login(...names: readonly string[]): string {
  return exactly("login", names);
}

/**
 * A pattern that matches exactly these device names.
 * @throws TypeError when there is no name, or an empty one
 */
export function hostname(...names: readonly string[]): string {
  return exactly(
    "hostname",
    names.map((name) => name.toLowerCase()),
  );
}

function exactly(helper: string, names: readonly string[]): string {
  if (names.length === 0 || names.some((name) => typeof name !== "string" || name === "")) {
    throw new TypeError(`${helper}(): needs one name or more, none of them empty`);
  }
  const [first = "", ...more] = [...new Set(names)].sort().map(quoted);
  return more.length === 0 ? `^${first}$` : `^(${[first, ...more].join("|")})$`;
}

/** The pattern in RE2 syntax that is found in this text only. */
const quoted = (text: string) => text.replaceAll(/[\\^$.|?*+()[\]{}]/g, "\\$&");

/**
 * A pattern that matches exactly the IPv4 addresses of these ranges, written as the service sees them, in
 * dotted decimals: `cidr("10.0.0.0/8")`, `cidr("192.0.2.7")`, `cidr("10.0.0.0/8", "192.168.0.0/16")`.
 * @throws TypeError when a range is not IPv4 in CIDR notation, or has bits set outside its prefix
 */
export function cidr(...ranges: readonly string[]): string {
  if (ranges.length === 0) throw new TypeError("cidr(): needs one range or more");
  const patterns = ranges.map(rangePattern);
  return patterns.length === 1 ? `^${patterns[0]}$` : `^(${patterns.join("|")})$`;
}

function rangePattern(range: string): string {
  const [address = "", length = "32", ...more] = range.split("/");
  const bits = Number(length);
  if (!isIPv4(address) || more.length > 0 || !/^[0-9]{1,2}$/.test(length) || bits > 32) {
    throw new TypeError(`cidr("${range}"): must be an IPv4 range like 10.0.0.0/8; for IPv6 write a pattern`);
  }
  return address
    .split(".")
    .map((text, index) => octetPattern(range, Number(text), Math.min(8, Math.max(0, bits - 8 * index))))
    .join("\\.");
}

/** A pattern for the octets that have the first `fixed` bits of this one. */
function octetPattern(range: string, octet: number, fixed: number): string {
  const size = 2 ** (8 - fixed);
  if (octet % size !== 0) {
    throw new TypeError(`cidr("${range}"): bits are set after the prefix; its first address is meant`);
  }
  return numbers(octet, octet + size - 1);
}

/** A pattern for the numbers from `low` to `high`, which are from 0 to 255 and have no leading zeros. */
function numbers(low: number, high: number): string {
  if (low === high) return String(low);
  if (low === 0 && high === 255) return "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  const parts: string[] = [];
  for (let from = low; from <= high; ) {
    const tens = from - (from % 10);
    const to = Math.min(high, tens + 9);
    const digits = from === to ? `${from % 10}` : `[${from % 10}-${to % 10}]`;
    parts.push(`${tens === 0 ? "" : tens / 10}${digits}`);
    from = to + 1;
  }
  return parts.length === 1 ? (parts[0] ?? "") : `(${parts.join("|")})`;
}
