import { BlockList, isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cidr, hostname, login } from "../../provider/helpers/patterns.ts";
import {
  type AccessKey,
  type AccessRule,
  ANY_ADDRESS,
  ANY_LOGIN,
  accessChanges,
  DEFAULT_LOGIN,
  evaluateAccess,
  loginsToEvaluate,
  type NamespacePolicy,
  samplesOf,
} from "../../sdk/policy/index.ts";

const key = (username: string): AccessKey => ({ fingerprint: "key", name: "laptop", username, filter: {} });
const rule = (more: Partial<AccessRule>): AccessRule => ({
  id: "1",
  action: "deny",
  active: true,
  priority: 1,
  sourceIp: "",
  username: "",
  filter: {},
  ...more,
});
const policy = (more: Partial<NamespacePolicy> = {}): NamespacePolicy => ({
  devices: [{ uid: "web", name: "web-1", tags: [] }],
  keys: [],
  rules: [],
  ...more,
});
const addressesOf = (...patterns: string[]) =>
  loginsToEvaluate([policy({ rules: patterns.map((sourceIp) => rule({ sourceIp })) })]).addresses;

describe("samples of the helpers' patterns", () => {
  const names = fc.uniqueArray(
    fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom(..."abz019.*$^|()-_+? é") }),
    { minLength: 1, maxLength: 60 },
  );

  test("login(): contain each of the given names, for any number of names", () => {
    fc.assert(
      fc.property(names, (given) => {
        expect(samplesOf(login(...given)).sort()).toEqual([...given].sort());
        const { logins } = loginsToEvaluate([policy({ keys: [key(login(...given))] })]);
        for (const name of given) expect(logins).toContain(name);
      }),
    );
  });

  test("hostname(): contain each of the given names, for any number of names", () => {
    fc.assert(
      fc.property(names, (given) => {
        expect(samplesOf(hostname(...given)).sort()).toEqual(
          [...new Set(given.map((name) => name.toLowerCase()))].sort(),
        );
      }),
    );
  });

  const toAddress = (value: number) =>
    [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
  const range = fc
    .tuple(fc.nat(2 ** 32 - 1), fc.integer({ min: 0, max: 32 }))
    .map(([value, bits]) => ({ first: toAddress(value - (value % 2 ** (32 - bits))), bits }));

  test("cidr(): contain an address in every range, and no address outside", { tags: ["long"] }, () => {
    fc.assert(
      fc.property(fc.array(range, { minLength: 1, maxLength: 25 }), (ranges) => {
        const addresses = addressesOf(cidr(...ranges.map(({ first, bits }) => `${first}/${bits}`)));
        const all = new BlockList();
        for (const { first, bits } of ranges) {
          all.addSubnet(first, bits);
          const one = new BlockList();
          one.addSubnet(first, bits);
          expect(
            addresses.some((address) => one.check(address)),
            `${first}/${bits}`,
          ).toBe(true);
        }
        for (const address of addresses) expect(all.check(address) || address === ANY_ADDRESS).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

describe("samples", () => {
  test.each([
    ["^(web|db)-(1|2)$", ["db-1", "db-2", "web-1", "web-2"]],
    ["root|ana", ["ana", "root"]],
    ["^a{3}$", ["aaa"]],
    ["^[a-z]+$", ["a"]],
    [".*", []],
    ["", []],
    ["(", []],
    ["\\Qa\\E", []],
  ])("of %j are %j", (pattern, expected) => {
    expect(samplesOf(pattern).sort()).toEqual(expected);
  });

  test("contain every alternative, even if there are too many combinations of alternatives", () => {
    const parts = Array.from({ length: 20 }, (_, n) => `n${n}x`);
    const samples = samplesOf(`^(${parts.join("|")})-(${parts.join("|")})$`);
    for (const part of parts) {
      expect(samples.some((sample) => sample.startsWith(`${part}-`))).toBe(true);
      expect(samples.some((sample) => sample.endsWith(`-${part}`))).toBe(true);
    }
    expect(samples.length).toBeLessThan(100);
  });

  test("are empty for a pattern that expands to a gigabyte, which RE2 rejects", () => {
    expect(samplesOf("(((((a{64}){64}){64}){64}){64})")).toEqual([]);
  });
});

describe("the evaluated logins and addresses", () => {
  test("of no policy are the default login, any other login and any address", () => {
    expect(loginsToEvaluate([])).toEqual({ logins: [DEFAULT_LOGIN, ANY_LOGIN], addresses: [ANY_ADDRESS] });
  });

  test("contain each login and address of the options, keys and rules once", () => {
    const one = policy({ keys: [key("^ana$")], rules: [rule({ username: "^eve$", sourceIp: "^10\\." })] });
    const other = policy({ keys: [key("^(ana|bob)$")], rules: [rule({ active: false, username: "^off$" })] });
    const { logins, addresses } = loginsToEvaluate([one, other], {
      logins: ["seen", "ana"],
      addresses: ["2001:db8::7"],
    });
    expect([...logins].sort()).toEqual(["ana", "bob", "eve", "off", ANY_LOGIN, "root", "seen"]);
    expect([...addresses].sort()).toEqual(["10.0.0.1", ANY_ADDRESS, "2001:db8::7"]);
  });

  test.each([
    ["^10\\.", "10.0.0.1"],
    ["^10\\.1\\.2\\.", "10.1.2.1"],
    ["^10\\.1\\.2\\.3$", "10.1.2.3"],
    ["^172\\.16", "172.16.0.1"],
    ["^192\\.168\\..*$", "192.168.0.1"],
    ["^10\\.\\d+\\.\\d+\\.\\d+$", "10.1.1.1"],
    ["^2001:db8:", "2001:db8::1"],
    ["^2001:db8:0:1:", "2001:db8:0:1::1"],
    ["^::1$", "::1"],
    ["192.168.1.5", "192.168.1.5"],
    ["^192.168.1.", "192.168.1.1"],
    ["^10\\..+$", "10.1.0.1"],
    ["^10\\.[^.]+\\.7\\.7$", "10.1.7.7"],
  ])("contains an address for %j: %s", (pattern, expected) => {
    expect(addressesOf(pattern)).toContain(expected);
  });

  test.each(["", ".*", "(", "^", "web", "^300\\.", "\\.5$"])(
    "contain no additional address for %j",
    (pattern) => {
      expect(addressesOf(pattern)).toEqual([ANY_ADDRESS]);
    },
  );

  test("contain only valid addresses", () => {
    const pattern = fc.string({ unit: fc.constantFrom(..."01259.:^$|()[]\\*+?fx"), maxLength: 16 });
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 4 }), (patterns) => {
        const addresses = addressesOf(...patterns);
        for (const address of addresses) expect(isIP(address), address).not.toBe(0);
        expect(addresses).toEqual([...new Set(addresses)]);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("an evaluation of two policies for all their logins and addresses reveals the change of", () => {
  const changed = (before: NamespacePolicy, after: NamespacePolicy) => {
    const evaluated = loginsToEvaluate([before, after]);
    return [...accessChanges(evaluateAccess(before, evaluated), evaluateAccess(after, evaluated))].map(
      ({ login, change, addresses }) => ({ login, change, addresses }),
    );
  };
  const many = Array.from({ length: 30 }, (_, n) => `user${n}`);

  test.each([".*", "", "^.+$", "^[^r]", "^\\w+$"])("a key from root to %j", (username) => {
    expect(changed(policy({ keys: [key("^root$")] }), policy({ keys: [key(username)] }))).toContainEqual({
      login: ANY_LOGIN,
      change: "gained",
      addresses: [ANY_ADDRESS],
    });
  });

  test("the last of many logins of a key", () => {
    const changes = changed(
      policy({ keys: [key(login(...many))] }),
      policy({ keys: [key(login(...many, "zoe"))] }),
    );
    expect(changes).toEqual([expect.objectContaining({ login: "zoe", change: "gained" })]);
  });

  test("a rule that denies another network", () => {
    const [inside, both] = [cidr("10.0.0.0/8"), cidr("10.0.0.0/8", "192.168.0.0/16")];
    const keys = [key("^root$")];
    const [change, ...more] = changed(
      policy({ keys, rules: [rule({ sourceIp: inside })] }),
      policy({ keys, rules: [rule({ sourceIp: both })] }),
    );
    expect(more).toEqual([]);
    expect(change).toMatchObject({ login: "root", change: "lost" });
    expect(change?.addresses.every((address) => address.startsWith("192.168."))).toBe(true);
  });

  test("a rule on an address with unescaped dots", () => {
    const keys = [key("^root$")];
    expect(changed(policy({ keys }), policy({ keys, rules: [rule({ sourceIp: "^192.168.1.5$" })] }))).toEqual(
      [{ login: "root", change: "lost", addresses: ["192.168.1.5"] }],
    );
  });
});
