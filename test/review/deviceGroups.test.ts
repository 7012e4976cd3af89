import fc from "fast-check";
import { expect, test } from "vitest";
import { DeviceGroups, type Trait } from "../../provider/access/deviceGroups.ts";
import type { AccessDevice } from "../../sdk/policy/index.ts";

const device = (name: string, ...tags: string[]): AccessDevice => ({ uid: `uid of ${name}`, name, tags });
const row = (prefix: string, count: number, ...tags: string[]) =>
  Array.from({ length: count }, (_, index) => device(`${prefix}${index + 1}`, ...tags));

const web = row("web-", 6, "prod", "web");
const db = row("db", 5, "prod");
const lab = row("lab_eu_", 4);
const others = [device("gate"), device("lamp"), device("mail", "prod"), device("print"), device("scan")];
const universe = [...web, ...db, ...lab, ...others];
const text = (devices: readonly AccessDevice[], among = universe) =>
  new DeviceGroups(among).of(devices.map(({ uid }) => uid));
const cover = (devices: readonly AccessDevice[], among: readonly AccessDevice[]) =>
  new DeviceGroups(among).cover(devices.map((device) => among.indexOf(device)));

test("lists a few devices by name, and summarizes all devices", () => {
  expect(text([])).toBe("no devices");
  expect(text(web.slice(0, 2))).toBe("web-1, web-2");
  expect(text(lab)).toBe("lab_eu_1, lab_eu_2, lab_eu_3, lab_eu_4");
  expect(text(universe)).toBe("all 20 devices");
  expect(text(lab, lab)).toBe("lab_eu_1, lab_eu_2, lab_eu_3, lab_eu_4");
});

test("summarizes many devices by a tag that no other device has, or else by such a name prefix", () => {
  expect(text(web)).toBe("6 devices tagged web");
  expect(text(db)).toBe("5 devices named db*");
  expect(text(universe.filter(({ tags }) => tags.includes("prod")))).toBe("12 devices tagged prod");
});

test("does not summarize devices by a tag or prefix that other devices also have", () => {
  expect(text(web.slice(0, 5))).toBe("5 of 20 devices: web-1, web-2, web-3, web-4, 1 more");
  // In the name of the added device, the prefix "db" is only a part of the first word.
  expect(text(db, [...universe, device("dbproxy")])).toBe("5 of 21 devices: db1, db2, db3, db4, 1 more");
  expect(text(db, [...universe, device("db-old")])).not.toContain("named db*");
});

test("lists several groups, then names, then a number", () => {
  expect(text([...web, ...lab])).toBe("10 of 20 devices: 6 tagged web, 4 named lab_*");
  expect(text([...db, ...lab, ...others.slice(0, 2)])).toBe(
    "11 of 20 devices: 5 named db*, 4 named lab_*, gate, lamp",
  );
  expect(text([...db, ...lab, ...others])).toBe(
    "14 of 20 devices: 5 named db*, 4 named lab_*, gate, lamp, 3 more",
  );
});

test("omits a group whose devices are all in later groups", () => {
  const some = [
    ...row("a-", 3, "one", "both"),
    ...row("b-", 3, "two", "both"),
    ...row("c-", 3, "one"),
    ...row("d-", 3, "two"),
  ];
  const { traits, left } = cover(some, [...some, device("other")]);
  expect(traits.map(({ kind, text, places }) => [kind, text, places.length])).toEqual([
    ["tag", "one", 6],
    ["tag", "two", 6],
  ]);
  expect(left).toEqual([]);
});

test("rejects a device that is not in the list of all devices", () => {
  expect(() => text([device("unknown")])).toThrow(RangeError);
});

const names = fc.stringMatching(/^(web|db|w)[-_.]?(eu)?[-_]?[0-9]{0,2}$/);
const devices = fc.uniqueArray(names, { maxLength: 30 }).chain((all) =>
  fc.tuple(
    ...all.map((name) =>
      fc.record({
        uid: fc.constant(`uid of ${name}`),
        name: fc.constant(name),
        tags: fc.uniqueArray(fc.constantFrom("prod", "web", "edge"), { maxLength: 3 }),
        chosen: fc.boolean(),
      }),
    ),
  ),
);

/** Returns the devices that have the tag or name prefix. */
const describedBy = ({ kind, text: word }: Trait, among: readonly AccessDevice[]) =>
  among.filter(({ name, tags }) => (kind === "tag" ? tags.includes(word) : name.startsWith(word)));
const uidsOf = (some: readonly AccessDevice[]) => [...new Set(some.map(({ uid }) => uid))].sort();

test("covers exactly the chosen devices by tags, prefixes and single names, without an unnecessary tag or prefix", () => {
  fc.assert(
    fc.property(devices, (all) => {
      const chosen = all.filter((one) => one.chosen);
      const { traits, left } = cover(chosen, all);
      const covered = (some: readonly Trait[], places = left) =>
        uidsOf([
          ...some.flatMap((trait) => describedBy(trait, all)),
          ...places.flatMap((place) => all[place] ?? []),
        ]);
      expect(covered(traits)).toEqual(uidsOf(chosen));
      expect(covered(traits)).toHaveLength(covered(traits, []).length + left.length);
      for (const trait of traits) {
        expect(describedBy(trait, all)).toHaveLength(trait.places.length);
        expect(covered(traits.filter((other) => other !== trait))).not.toEqual(uidsOf(chosen));
      }
    }),
    { numRuns: 500 },
  );
});
