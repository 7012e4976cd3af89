import { describe, expect, test } from "vitest";
import { parseNetwork } from "../../sdk/policy/index.ts";

const LAST_IPV6 = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";

describe("probe addresses are the ends of a network, the neighboring addresses, and similar addresses", () => {
  test.each([
    ["10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0", "110.0.0.0", "100.0.0.0"],
    ["192.0.2.7", "192.0.2.7", "192.0.2.6", "192.0.2.8", "192.0.20.7", "192.0.2.70"],
    [
      "10.1.2.0/31",
      "10.1.2.0",
      "10.1.2.1",
      "10.1.1.255",
      "10.1.2.2",
      "110.1.2.0",
      "100.1.2.0",
      "10.10.2.0",
      "10.1.20.0",
    ],
    ["0.0.0.0/0", "0.0.0.0", "255.255.255.255", "10.0.0.0"],
    ["255.255.255.255", "255.255.255.255", "255.255.255.254"],
    ["0.0.0.0", "0.0.0.0", "0.0.0.1", "10.0.0.0"],
    [
      "2001:db8:1::/48",
      "2001:db8:1::",
      "2001:db8:1:ffff:ffff:ffff:ffff:ffff",
      "2001:db8:0:ffff:ffff:ffff:ffff:ffff",
      "2001:db8:2::",
    ],
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1", "2001:db8::", "2001:db8::2"],
    ["::/0", "::", LAST_IPV6],
    [LAST_IPV6, LAST_IPV6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"],
  ])("%s", (text, ...probes) => {
    expect(parseNetwork(text).probes).toEqual(probes);
  });
});

describe("an IPv4 address that is mapped into IPv6 is treated as IPv4", () => {
  test.each([
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["::FFFF:0a01:0203", "10.1.2.3"],
    ["0:0:0:0:0:ffff:a00:0/8", "10.0.0.0"],
  ])("%s", (text, first) => {
    expect(parseNetwork(text).probes[0]).toBe(first);
  });

  test("rejects a prefix that is too long for IPv4", () => {
    expect(() => parseNetwork("::ffff:10.0.0.0/104")).toThrow("must be an address or a network");
  });

  test.each([
    ["::10.0.0.1", "::a00:1"],
    ["64:ff9b::10.0.0.1", "64:ff9b::a00:1"],
    ["::fffe:10.0.0.1", "::fffe:a00:1"],
  ])("an address that only ends like IPv4, as %s, stays IPv6", (text, first) => {
    const network = parseNetwork(text);
    expect(network.probes[0]).toBe(first);
    expect(network.contains("10.0.0.1")).toBe(false);
  });
});

test.each([
  ["10.0.0.0/8", ["10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"], ["9.255.255.255", "11.0.0.0", "::a00:1"]],
  ["2001:db8::/33", ["2001:db8::", "2001:DB8:7fff::1"], ["2001:db8:8000::", "2001:db7::", "10.0.0.1"]],
  ["192.0.2.7", ["192.0.2.7", "::ffff:192.0.2.7"], ["192.0.2.70", "a name", ""]],
])("%s contains only its own addresses", (text, inside, outside) => {
  const { contains } = parseNetwork(text);
  expect(inside.filter((address) => !contains(address))).toEqual([]);
  expect(outside.filter(contains)).toEqual([]);
});

test.each([
  "",
  "/8",
  "10.0.0.0/",
  "10.0.0.0/x",
  "10.0.0.0/-1",
  "10.0.0.0/33",
  "10.0.0.0/8/8",
  "2001:db8::/129",
  // C libraries accept the first three texts as addresses.
  "127.1",
  "010.0.0.1",
  "0x7f000001",
  "10.0.0.0/ 8",
  " 10.0.0.0",
  "web-1",
  "[::1]",
  "1::2::3",
])("rejects %j as a network", (text) => {
  expect(() => parseNetwork(text)).toThrow(
    `"${text}" must be an address or a network, like 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`,
  );
});

test.each(["10.0.0.1/8", "192.0.2.7/31", "0.0.0.1/0", "2001:db8::1/64", "2001:db8::8000/112", "8000::/0"])(
  "rejects %s, which has host bits set",
  (text) => {
    expect(() => parseNetwork(text)).toThrow(`"${text}" has host bits set. Use `);
  },
);

test.each(["fe80::1%eth0", "::ffff:10.0.0.1%1"])("rejects %s, which has a host-specific zone", (text) => {
  expect(() => parseNetwork(text)).toThrow(`${text} must have no zone`);
});
