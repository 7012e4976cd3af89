import fc from "fast-check";
import { expect, it } from "vitest";
import { accessMapData } from "../../provider/map/accessMapData.ts";
import type { AccessMapData } from "../../provider/map/data.ts";
import {
  type Access,
  ANY_ADDRESS,
  ANY_LOGIN,
  accessChanges,
  grantsOf,
  type NamespacePolicy,
  subjectFacts,
} from "../../sdk/policy/index.ts";
import { accessesOf, example, largeEstate, meta } from "./support/example.ts";

const tags = fc.subarray(["a", "b", "c"]);
const login = fc.constantFrom("", "^root$", "^deploy$", "oo");
const filter = fc.oneof(
  fc.record({ tags }),
  fc.record({ hostname: fc.constantFrom("^d1$", "d", "(") }),
  fc.constant({}),
);
const policy: fc.Arbitrary<NamespacePolicy> = fc.record({
  devices: fc.uniqueArray(
    fc.record({ uid: fc.constantFrom("1", "2", "3", "4"), name: fc.constantFrom("d1", "d2", "e1"), tags }),
    { selector: ({ uid }) => uid },
  ),
  keys: fc.uniqueArray(
    fc.record({
      fingerprint: fc.constantFrom("f1", "f2", "f3"),
      name: fc.constant("key"),
      username: login,
      filter,
    }),
    { selector: ({ fingerprint }) => fingerprint },
  ),
  rules: fc.uniqueArray(
    fc.record({
      id: fc.constantFrom("r1", "r2", "r3"),
      action: fc.constantFrom("allow" as const, "deny" as const),
      active: fc.boolean(),
      priority: fc.integer({ min: 1, max: 3 }),
      sourceIp: fc.constantFrom("", "^198\\.51\\.100\\.", "^10\\."),
      username: login,
      filter,
    }),
    { selector: ({ id }) => id },
  ),
});

/** Returns one line for each login that the map shows. */
function loginsOf({ keys, devices, deviceSets, edges }: AccessMapData): string[] {
  return edges.flatMap(({ key, devices: set, logins, addresses, change }) => {
    const runs = deviceSets[set] ?? [];
    const uids = devices.filter((_, index) =>
      runs.some((first, at) => at % 2 === 0 && index >= first && index <= (runs[at + 1] ?? -1)),
    );
    return logins.flatMap((login) =>
      addresses.flatMap((address) =>
        uids.map(({ uid }) => [change, keys[key]?.fingerprint, login, address, uid].join(" ")),
      ),
    );
  });
}

const shownLogin = (login: string) =>
  login === ANY_LOGIN ? "any login that the policy does not mention" : login;
const shown = (address: string) =>
  address === ANY_ADDRESS ? "any address that the policy does not mention" : address;

/** Returns the same lines as the map, computed by the functions of the policy. */
function expected(before: Access, after: Access): string[] {
  const name = (change: string, fingerprint: string, login: string, address: string, uid: string) =>
    [change, fingerprint, shownLogin(login), shown(address), uid].join(" ");
  const changes = [...accessChanges(before, after)].flatMap(
    ({ subject, login, addresses, change, devices }) =>
      addresses.flatMap((address) =>
        devices.map((uid) => name(change, subjectFacts(subject).id, login, address, uid)),
      ),
  );
  const gained = new Set(changes);
  const kept = [...grantsOf(after)].flatMap(({ subject, login, addresses, devices }) =>
    addresses.flatMap((address) =>
      devices
        .filter((uid) => !gained.has(name("gained", subjectFacts(subject).id, login, address, uid)))
        .map((uid) => name("kept", subjectFacts(subject).id, login, address, uid)),
    ),
  );
  return [...changes, ...kept];
}

it("contains exactly the logins that the two policies allow, and each login once", { tags: ["long"] }, () => {
  fc.assert(
    fc.property(policy, policy, (one, other) => {
      const { before, after } = accessesOf(one, other);
      const map = accessMapData(before, after, meta);
      expect(loginsOf(map).sort()).toEqual(expected(before, after).sort());
      for (const { change, cause } of map.edges) expect(cause === undefined).toBe(change === "kept");
    }),
    { numRuns: 150 },
  );
});

it("contains the rule and the cause of each change", () => {
  const { edges, keys, texts } = accessMapData(example.before, example.after, meta);
  const sentences = edges.flatMap(({ key, change, rule, cause = -1 }) =>
    change === "kept" ? [] : [`${keys[key]?.name} ${change}: ${texts[cause]?.text}; ${texts[rule]?.text}`],
  );
  expect(sentences.sort()).toEqual([
    "dev-laptop gained: the key's logins or devices change; allowed, since no rule matches",
    "northwind-2024 lost: rule no-root-on-pilots (deny; priority 30; login root; any address; devices tagged pilot) denies it; allowed, since no rule matches",
    "northwind-2024 lost: the key's logins or devices change; allowed, since no rule matches",
    "oncall-phone gained: the key is new; allowed by rule oncall-office (allow; priority 20; login root; addresses that begin with 198.51.100.; devices tagged lab)",
    "oncall-phone gained: the key is new; allowed, since no rule matches",
  ]);
});

it("groups keys by person and devices by tags, and splits large groups by name", () => {
  const small = accessMapData(example.before, example.after, meta);
  expect(small.people.map(({ name, count }) => `${name} ${count}`)).toContain("Ana Silva 2");
  expect(small.groups.map(({ name, count }) => `${name} ${count}`)).toEqual([
    "ci 2",
    "core 1",
    "db + prod 3",
    "edge 8",
    "edge + pilot 5",
    "lab 4",
    "prod + web 6",
  ]);
  const names = ["pump", "valve"].flatMap((name) =>
    Array.from({ length: 40 }, (_, index) => `${name}-${index}`),
  );
  const devices = [...names, "odd"].map((name) => ({ uid: name, name, tags: ["plant"] }));
  const many = accessesOf({ devices, keys: [], rules: [] }, { devices, keys: [], rules: [] });
  expect(accessMapData(many.before, many.after, meta).groups).toEqual([
    { name: "plant · pump-*", from: 0, count: 40 },
    { name: "plant · valve-*", from: 40, count: 40 },
    { name: "plant · other names", from: 80, count: 1 },
  ]);
});

it("marks keys that the change removes", () => {
  const { keys } = accessMapData(example.after, example.before, meta);
  expect(keys.filter(({ state }) => state).map(({ name, state }) => `${name} ${state}`)).toEqual([
    "oncall-phone removed",
  ]);
});

it("limits the size of the data for a large namespace", () => {
  const { before, after } = largeEstate(2000, 300);
  expect(JSON.stringify(accessMapData(before, after, meta)).length).toBeLessThan(1_000_000);
});

it("rejects two policies with different evaluated logins or devices", () => {
  const other = accessesOf({ devices: [], keys: [], rules: [] }, { devices: [], keys: [], rules: [] });
  expect(() => accessMapData(other.before, example.after, meta)).toThrow("the same list of uids");
});
