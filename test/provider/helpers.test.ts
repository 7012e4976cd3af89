import { writeFileSync } from "node:fs";
import { BlockList } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cidr, hostname, login } from "../../provider/helpers/patterns.ts";
import { sshKeyFile } from "../../provider/helpers/sshKeyFile.ts";
import { compilePattern } from "../../sdk/policy/index.ts";
import { testFolder } from "../support/folder.ts";
import { sshKeyLine } from "./support/programs.ts";

/** True if the pattern matches according to the service: with RE2, and without implicit anchors. */
const admits = (pattern: string, text: string) => compilePattern(pattern).test(text);

describe("login() and hostname()", () => {
  const names = fc.array(
    fc.string({ minLength: 1, maxLength: 6, unit: fc.constantFrom(..."ab.*$^\\|()-_[]{}+?") }),
    {
      minLength: 1,
      maxLength: 4,
    },
  );

  it("admit only the given names", () => {
    fc.assert(
      fc.property(names, names, (given, others) => {
        const pattern = login(...given);
        for (const name of given) expect(admits(pattern, name)).toBe(true);
        for (const name of others) expect(admits(pattern, name)).toBe(given.includes(name));
        for (const name of given) expect(admits(pattern, `x${name}`)).toBe(given.includes(`x${name}`));
      }),
    );
  });

  it("return readable patterns", () => {
    expect(login("root")).toBe("^root$");
    expect(login("root", "ana")).toBe("^(ana|root)$");
    expect(hostname("Web-1")).toBe("^web-1$");
    expect(admits(login("root"), "notroot")).toBe(false);
  });

  it.each([[[]], [[""]]])("reject %j", (given) => {
    expect(() => login(...given)).toThrow(/login\(\) needs at least one name/);
  });
});

describe("cidr()", () => {
  const toNumber = (address: string) =>
    address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const toAddress = (value: number) =>
    [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");

  it("matches only the addresses of its range", () => {
    const range = fc
      .tuple(fc.nat(2 ** 32 - 1), fc.integer({ min: 0, max: 32 }))
      .map(([value, bits]) => ({ first: value - (value % 2 ** (32 - bits)), bits }));
    fc.assert(
      fc.property(range, fc.nat(2 ** 32 - 1), fc.nat(), ({ first, bits }, other, offset) => {
        const size = 2 ** (32 - bits);
        const pattern = cidr(`${toAddress(first)}/${bits}`);
        const inside = (value: number) => value >= first && value < first + size;
        const edges = [first, first + size - 1, first - 1, first + size, first + (offset % size), other];
        for (const value of edges.filter((edge) => edge >= 0 && edge < 2 ** 32)) {
          expect(admits(pattern, toAddress(value)), `${pattern} ${toAddress(value)}`).toBe(inside(value));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it("matches only whole addresses", () => {
    expect(admits(cidr("10.0.0.0/8"), "110.0.0.1")).toBe(false);
    expect(admits(cidr("192.0.2.7"), "192.0.2.77")).toBe(false);
    expect(admits(cidr("192.0.2.7"), "192a0b2c7")).toBe(false);
    expect(toNumber("10.0.0.0")).toBe(167772160);
  });

  it("accepts several ranges", () => {
    const pattern = cidr("10.0.0.0/8", "192.168.0.0/16");
    expect(["10.1.2.3", "192.168.9.9", "192.169.0.1"].map((address) => admits(pattern, address))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each(["", "10.0.0.0/33", "10.0.0/8", "2001:db8::/129", "10.0.0.0/8/8", "10.0.0.0/-1", "10.0.0.0/08x"])(
    "rejects %j and reports it",
    (range) => {
      expect(() => cidr(range)).toThrow(`cidr("${range}") must be a range like`);
    },
  );

  it("matches only the IPv6 addresses of its range, in canonical form", { tags: ["long"] }, () => {
    // The random addresses contain many zeros, since zeros are common in real addresses and determine their canonical
    // form.
    const group = fc.oneof(fc.constant(0), fc.constantFrom(1, 0x10, 0x800, 0xffff), fc.nat(0xffff));
    const groups = fc.array(group, { minLength: 8, maxLength: 8 });
    const write = (of: readonly number[]) =>
      new URL(`http://[${of.map((one) => one.toString(16)).join(":")}]`).hostname.slice(1, -1);
    const mixed = (first: readonly number[], other: readonly number[], bits: number) =>
      first.map((one, index) => {
        const free = 2 ** (16 - Math.min(16, Math.max(0, bits - 16 * index)));
        return one - (one % free) + ((other[index] ?? 0) % free);
      });
    fc.assert(
      fc.property(groups, groups, fc.integer({ min: 0, max: 128 }), (given, other, bits) => {
        const first = mixed(given, Array(8).fill(0), bits);
        const range = `${write(first)}/${bits}`;
        const isMapped = bits >= 96 && first.slice(0, 6).join() === "0,0,0,0,0,65535";
        if (isMapped) return void expect(() => cidr(range)).toThrow(/use an IPv4 range/);
        const pattern = cidr(range);
        const members = new BlockList();
        members.addSubnet(write(first), bits, "ipv6");
        // Checks the first address, a random address of the range, a random address, and an address that differs from
        // the range in one bit.
        const flipped = first.with(0, (first[0] ?? 0) ^ 0x8000);
        for (const address of [first, mixed(first, other, bits), other, flipped].map(write)) {
          expect(admits(pattern, address), `${range} ${pattern} ${address}`).toBe(
            members.check(address, "ipv6"),
          );
        }
      }),
      { numRuns: 3000 },
    );
    expect(cidr("2001:DB8::/32")).toBe("^2001:db8:[0-9a-f:]*$");
    expect(admits(cidr("10.0.0.0/8", "2001:db8::/32"), "2001:db8::7")).toBe(true);
  });

  it("rejects IPv4-mapped IPv6 addresses, which the service writes as IPv4", () => {
    for (const range of ["::ffff:10.0.0.1", "::ffff:10.0.0.0/104"]) {
      expect(() => cidr(range)).toThrow(/use an IPv4 range/);
    }
  });

  it("rejects a range with host bits", () => {
    expect(() => cidr("2001:db8::1/32")).toThrow(/host bits set/);
    expect(() => cidr("10.0.0.1/8")).toThrow(/host bits set/);
  });
});

describe("sshKeyFile()", () => {
  const fileOf = (text: string) => {
    const file = join(testFolder(), "key.pub");
    writeFileSync(file, text);
    return file;
  };

  it("reads the key of a file", () => {
    const line = sshKeyLine("ana@laptop");
    expect(sshKeyFile(fileOf(`# Ana's\n\n${line}\n`))).toBe(line);
  });

  it.each([
    ["", /must contain exactly one public key, but has 0 lines/],
    [`${sshKeyLine()}\n${sshKeyLine()}\n`, /must contain exactly one public key, but has 2 lines/],
    ["-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", /contains a private key/],
    ["ssh-ed25519 AAAA", /must contain a complete ssh-ed25519 key/],
    ["x".repeat(70_000), /is not a public key/],
  ])("rejects a file with other contents and reports its path", (text, message) => {
    const file = fileOf(text);
    expect(() => sshKeyFile(file)).toThrow(message);
    expect(() => sshKeyFile(file)).toThrow(file);
  });

  it("reports the path of a missing file", () => {
    expect(() => sshKeyFile("/nowhere/key.pub")).toThrow(/\/nowhere\/key\.pub/);
  });
});
