import { BlockList } from "node:net";
import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, it, test } from "vitest";
import { cidr, hostname, login } from "../../provider/helpers/patterns.ts";
import { conditionsOf } from "../../provider/map/conditions.ts";
import type { AccessRule } from "../../sdk/policy/index.ts";
import { patternAndText, textsNear } from "../policy/patternArbitraries.ts";
import { accessRule } from "./support/policyObjects.ts";

/** Returns the phrases for logins, addresses and devices. */
const phrases = (facts: Partial<AccessRule>): string[] =>
  conditionsOf(accessRule("1", facts)).text.split("; ");

it.each([
  ["", "any login"],
  [".*", "any login"],
  ["^.*$", "any login"],
  ["^root$", "login root"],
  [login("root", "ana"), "login ana or root"],
  [login("root", "ana", "bo"), "login ana, bo or root"],
  ["^web-", "logins that begin with web-"],
  ["^web-.*$", "logins that begin with web-"],
  ["-admin$", "logins that end with -admin"],
  ["root", "logins that contain root"],
  ["^[a-z]+$", "logins that match ^[a-z]+$"],
  ["^(a b|c)$", "logins that match ^(a b|c)$"],
  ["^root|ana$", "logins that match ^root|ana$"],
  ["(", "every login (invalid pattern)"],
])("describes the login pattern %j as %j", (username, words) => {
  expect(phrases({ username })).toEqual([words, "any address", "all devices"]);
});

it.each([
  ["^203\\.0\\.113\\.", "addresses that begin with 203.0.113."],
  [cidr("203.0.113.7"), "address 203.0.113.7"],
  [cidr("10.0.0.0/8", "192.0.2.0/25"), "address in 10.0.0.0/8 or 192.0.2.0/25"],
])("describes the address pattern %j as %j", (sourceIp, words) => {
  expect(phrases({ sourceIp })[1]).toBe(words);
});

it.each([
  [{ hostname: hostname("web-1") }, "device web-1"],
  [{ hostname: "^web-" }, "devices whose names begin with web-"],
  [{ tags: ["lab", "pilot"] }, "devices tagged lab or pilot"],
  [{ hostname: ".*", tags: ["lab"] }, "all devices"],
  [{ tags: [] }, "all devices"],
])("describes the filter %j as %j", (filter, words) => {
  expect(phrases({ filter })[2]).toBe(words);
});

test("each pattern is in the words or in the list of patterns", () => {
  const { patterns } = conditionsOf(
    accessRule("1", { username: "^root$", sourceIp: "^[0-9]+", filter: { hostname: "^web-" } }),
  );
  expect(patterns).toEqual(["login ^root$", "device ^web-"]);
});

/** Returns true if the words for a pattern of logins include the text; undefined if the words contain the pattern. */
function includes(words: string, text: string): boolean | undefined {
  if (words === "any login" || words === "every login (invalid pattern)") return true;
  const [, verb, names = ""] = /^login(s that \w+ with|s that contain|) (.*)$/s.exec(words) ?? [];
  const test = {
    "": (name: string) => text === name,
    "s that begin with": (name: string) => text.startsWith(name),
    "s that end with": (name: string) => text.endsWith(name),
    "s that contain": (name: string) => text.includes(name),
  }[verb ?? "pattern"];
  return test && names.split(/, | or /).some(test);
}

test("words include a login name if and only if the pattern matches the login name", {
  tags: ["long"],
}, () => {
  const cases = patternAndText.chain(({ pattern, text }) =>
    textsNear(text).map((texts) => ({ pattern, texts: texts.filter((one) => !one.includes("\n")) })),
  );
  let [matched, missed] = [0, 0];
  fc.assert(
    fc.property(cases, ({ pattern, texts }) => {
      const [words = ""] = phrases({ username: pattern });
      for (const text of texts) {
        const included = includes(words, text);
        if (included === undefined) continue;
        const matches = words.endsWith("(invalid pattern)") || RE2JS.compile(pattern).test(text);
        expect(included, JSON.stringify({ pattern, words, text })).toBe(matches);
        if (matches) matched += 1;
        else missed += 1;
      }
    }),
    { numRuns: 1500 },
  );
  // Fails if too few patterns have words for a meaningful test.
  expect(Math.min(matched, missed)).toBeGreaterThan(150);
});

test("networks in words include an address if and only if the pattern matches the address", {
  tags: ["long"],
}, () => {
  const text = (address: number) => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
  const range = fc
    .tuple(fc.nat({ max: 2 ** 32 - 1 }), fc.integer({ min: 1, max: 31 }))
    .map(([address, bits]) => ({ first: (address & (-1 << (32 - bits))) >>> 0, bits }));
  const near = fc.tuple(fc.nat({ max: 2 ** 32 - 1 }), fc.integer({ min: -3, max: 3 }));
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: 3 }), near, (ranges, [address, offset]) => {
      const pattern = cidr(...ranges.map(({ first, bits }) => `${text(first)}/${bits}`));
      const [, words = ""] = phrases({ sourceIp: pattern });
      const listed = new BlockList();
      for (const [, network = "", bits] of words.matchAll(/([\d.]+)\/(\d+)/g))
        listed.addSubnet(network, Number(bits));
      const edges = ranges.map(({ first, bits }) => first + offset + (offset > 0 ? 2 ** (32 - bits) - 2 : 0));
      for (const one of [address, ...edges].map(text))
        expect(listed.check(one), JSON.stringify({ pattern, words, one })).toBe(
          RE2JS.compile(pattern).test(one),
        );
    }),
  );
});
