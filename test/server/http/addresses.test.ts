import { expect, test } from "vitest";
import {
  addressMatcher,
  isLoopback,
  networkOf,
  normalAddress,
  normalRange,
} from "../../../server/addresses.ts";

test.each([
  ["203.0.113.7", "203.0.113.7"],
  ["::ffff:203.0.113.7", "203.0.113.7"],
  ["::FFFF:cb00:7107", "203.0.113.7"],
  ["2001:DB8:0:0::7", "2001:db8::7"],
  ["fe80::1%eth0", "fe80::1"],
  ["::10.0.0.1", "::a00:1"],
  ["127.1", undefined],
  ["0x7f000001", undefined],
  ["010.0.0.1", undefined],
  ["203.0.113.7, 203.0.113.8", undefined],
  ["", undefined],
])("normalizes the address %s to %s", (text, address) => {
  expect(normalAddress(text)).toBe(address);
});

test.each([
  ["203.0.113.7", "203.0.113.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["2001:db8:1:3::", "2001:db8:1:3::/64"],
  ["", ""],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test.each([
  ["10.0.0.0/8", "10.0.0.0/8"],
  ["::ffff:10.0.0.0/104", "10.0.0.0/8"],
  ["FD00::/8", "fd00::/8"],
  ["10.0.0.1", "10.0.0.1"],
  ["10.0.0.0/33", undefined],
  ["::ffff:10.0.0.0/95", undefined],
  ["fd00::/129", undefined],
  ["10.0.0.0/", undefined],
  ["10.0.0.0/-1", undefined],
  ["10/8", undefined],
  ["proxy", undefined],
])("normalizes the range %s to %s", (text, range) => {
  expect(normalRange(text)).toBe(range);
});

test("matches an address in any notation, and never by a range of the other family", () => {
  const matches = addressMatcher(["10.1.0.0/16", "192.0.2.1", "fd00::/8", "::1"]);
  for (const inside of ["10.1.255.255", "::ffff:10.1.0.1", "192.0.2.1", "fdff::1", "0:0:0:0:0:0:0:1"]) {
    expect([inside, matches(inside)]).toEqual([inside, true]);
  }
  for (const outside of ["10.2.0.0", "192.0.2.2", "fc00::1", "::2", "", "10.1.0.1x"]) {
    expect([outside, matches(outside)]).toEqual([outside, false]);
  }
  expect(addressMatcher([])("127.0.0.1")).toBe(false);
});

test("only addresses of the same machine are loopback", () => {
  expect(["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"].map(isLoopback)).toEqual(Array(4).fill(true));
  expect(["0.0.0.0", "::", "192.0.2.1", "localhost"].map(isLoopback)).toEqual(Array(4).fill(false));
});
