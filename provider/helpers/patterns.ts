import { isIP } from "node:net";

/**
 * Returns a pattern that matches only the given login names. For example, `login("root")` is `^root$`, and
 * `login("root", "ana")` is `^(ana|root)$`. The service does not anchor patterns, so `root` without `login()` also
 * matches `notroot`.
 * @throws TypeError if no name is given, or if a name is empty
 */
export function login(...names: readonly string[]): string {
  return exactly("login", names);
}

/**
 * Returns a pattern that matches only the given device names.
 * @throws TypeError if no name is given, or if a name is empty
 */
export function hostname(...names: readonly string[]): string {
  return exactly(
    "hostname",
    names.map((name) => name.toLowerCase()),
  );
}

function exactly(helper: string, names: readonly string[]): string {
  if (names.length === 0 || names.some((name) => typeof name !== "string" || name === "")) {
    throw new TypeError(`${helper}() needs at least one name, and no name can be empty`);
  }
  const [first = "", ...more] = [...new Set(names)].sort().map(quoted);
  return more.length === 0 ? `^${first}$` : `^(${[first, ...more].join("|")})$`;
}

/** Escapes a string for RE2, so that the pattern matches the string literally. */
const quoted = (text: string) => text.replaceAll(/[\\^$.|?*+()[\]{}]/g, "\\$&");

/**
 * Returns a pattern that matches only the addresses in the given ranges. The pattern expects the service's notation:
 * IPv4 in dotted decimal form, IPv6 as in RFC 5952. Examples: `cidr("10.0.0.0/8")`, `cidr("192.0.2.7")`,
 * `cidr("10.0.0.0/8", "2001:db8::/32")`.
 * @throws TypeError if a range is not in CIDR notation, or has host bits set
 */
export function cidr(...ranges: readonly string[]): string {
  if (ranges.length === 0) throw new TypeError("cidr(): needs at least one range");
  const patterns = ranges.flatMap(rangePatterns);
  return patterns.length === 1 ? `^${patterns[0]}$` : `^(${patterns.join("|")})$`;
}

function rangePatterns(range: string): string[] {
  const [address = "", length, ...more] = range.split("/");
  const family = address.includes("%") ? 0 : isIP(address);
  const most = family === 6 ? 128 : 32;
  const bits = Number(length ?? most);
  const isLength = length === undefined || /^[0-9]{1,3}$/.test(length);
  if (family === 0 || more.length > 0 || !isLength || bits > most) {
    throw new TypeError(`cidr("${range}") must be a range like 10.0.0.0/8 or 2001:db8::/32`);
  }
  const isMapped = family === 6 && bits >= 96 && groupsOf(address).slice(0, 6).join() === "0,0,0,0,0,65535";
  if (isMapped) {
    throw new TypeError(`cidr("${range}"): the service writes these addresses as IPv4; use an IPv4 range`);
  }
  // A single IPv6 address has exactly one canonical notation, which is the pattern.
  if (family === 6)
    return bits === 128 ? [canonicalText(address)] : ipv6Patterns(range, groupsOf(address), bits);
  const octets = address
    .split(".")
    .map((text, index) => octetPattern(range, Number(text), Math.min(8, Math.max(0, bits - 8 * index))));
  return [octets.join("\\.")];
}

/**
 * Returns the canonical notation of an IPv6 address. The URL standard writes addresses as in RFC 5952, but without
 * dotted decimals at the end.
 */
const canonicalText = (address: string) => new URL(`http://[${address}]`).hostname.slice(1, -1);

/** Returns the eight 16-bit groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = "", tail] = canonicalText(address).split("::");
  const [before = [], after = []] = [head, tail].map((part) => (part ? part.split(":") : []));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16));
}

const ANY_GROUP = "[0-9a-f]{1,4}";

/**
 * Returns patterns for all IPv6 addresses with the given leading bits. The notation of an address may abbreviate two or
 * more consecutive groups of zeros as `::`. The abbreviated groups can be inside the prefix, at its end, or after it.
 */
function ipv6Patterns(range: string, groups: readonly number[], bits: number): string[] {
  const fixed = Math.ceil(bits / 16);
  const patterns = groups.map((group, index) =>
    groupPattern(range, group, Math.min(16, Math.max(0, bits - 16 * index))),
  );
  const isZero = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0);
  const text = (from: number, to: number) => patterns.slice(from, to).join(":");
  const free = 8 - fixed;
  if (fixed === 0) return ["[0-9a-f:]*:[0-9a-f:.]*"];
  const whole = free === 0 ? text(0, 8) : `${text(0, fixed)}:[0-9a-f:]*`;
  const shortened: string[] = [];
  for (let from = 0; from < fixed; from += 1) {
    const head = `${text(0, from)}::`;
    // The abbreviated groups extend at least to the end of the prefix. They may also include groups after the prefix,
    // up to the end of the address.
    const rest = 8 - Math.max(fixed, from + 2);
    if (isZero(from, fixed) && from + 2 <= 8) {
      shortened.push(rest > 0 ? `${head}(${ANY_GROUP}(:${ANY_GROUP}){0,${rest - 1}})?` : head);
    }
    for (let to = from + 2; to < fixed; to += 1) {
      if (isZero(from, to)) shortened.push(`${head}${text(to, fixed)}${`:${ANY_GROUP}`.repeat(free)}`);
    }
  }
  return [whole, ...shortened];
}

/** Returns a pattern for all IPv6 groups whose first `fixed` bits equal the first bits of `group`. */
function groupPattern(range: string, group: number, fixed: number): string {
  const size = 2 ** (16 - fixed);
  if (group % size !== 0) throw bitsAfter(range);
  if (size === 65_536) return ANY_GROUP;
  // Groups have no leading zeros, so the range is split by the number of digits. The numbers of each part have the same
  // first digits, then a digit from a range, and then any digits.
  const last = group + size - 1;
  const parts: string[] = [];
  for (let low = group; low <= last; ) {
    const { length } = low.toString(16);
    const high = Math.min(last, 16 ** length - 1);
    parts.push(digitsPattern(low.toString(16), high.toString(16)));
    low = high + 1;
  }
  return parts.length === 1 ? (parts[0] ?? "") : `(${parts.join("|")})`;
}

/**
 * Returns a pattern for the hexadecimal numbers from `low` to `high`, which have the same number of digits. After the
 * first digit in which `low` and `high` differ, all digits can have any value.
 */
function digitsPattern(low: string, high: string): string {
  const at = [...low].findIndex((digit, index) => digit !== high[index]);
  if (at < 0) return low;
  const rest = low.length - at - 1;
  const digit = `[${"0123456789abcdef".slice(Number.parseInt(low[at] ?? "", 16), Number.parseInt(high[at] ?? "", 16) + 1)}]`;
  return low.slice(0, at) + digit + (rest > 0 ? `[0-9a-f]${rest > 1 ? `{${rest}}` : ""}` : "");
}

const bitsAfter = (range: string) =>
  new TypeError(`cidr("${range}"): the range has host bits set. Use the first address of the range`);

/** Returns a pattern for all octets whose first `fixed` bits equal the first bits of `octet`. */
function octetPattern(range: string, octet: number, fixed: number): string {
  const size = 2 ** (8 - fixed);
  if (octet % size !== 0) {
    throw bitsAfter(range);
  }
  return numbers(octet, octet + size - 1);
}

/**
 * Returns a pattern for the decimal numbers from `low` to `high`, without leading zeros. Both limits are between 0 and
 * 255.
 */
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
