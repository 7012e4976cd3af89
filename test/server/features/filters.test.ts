import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { withSharedApp } from "../http/lab.ts";
import {
  ED25519,
  encodeFilter,
  enrol,
  operator,
  property,
  type TestUser,
  valuesOf,
} from "../http/testApp.ts";
import { type Item, matches, type Wire } from "./filterModel.ts";

let ana: TestUser;
let devices: Wire[];

const NAMES = ["gate", "Gate-1", "100%", "1000", "a_b", "axb", "edge", "o'hara", 'q"uote', "b\\s", ""];
const TAGS = ["edge", "core", "Edge2", "100"];

const app = withSharedApp();
beforeAll(async () => {
  // Who is online depends on the time, which all answers must share.
  app.stopClock();
  ana = await app.user("ana", "lab");
  const now = app.services.now();
  const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;
  for (let n = 0; n < 33; n += 1) {
    const uid = n.toString(16).padStart(64, "0");
    await app.services.db.device.create({
      data: {
        uid,
        tenantId: ana.tenant,
        name: pick(NAMES, n),
        mac: n % 3 === 0 ? "" : `00:00:00:00:00:${String(n).padStart(2, "0")}`,
        infoId: pick(["debian", "arch", "100"], n),
        infoPrettyName: pick(NAMES, n + 3),
        infoVersion: "v0.19.0",
        infoArch: pick(["amd64", "arm64"], n),
        infoPlatform: pick(["native", "docker"], n),
        publicKey: "k",
        status: pick(["pending", "accepted", "rejected"], n),
        statusUpdatedAt: now,
        createdAt: now,
        // Some at the same moment: the order of pages must not depend on chance.
        lastSeen: new Date(now.getTime() - pick([0, 1000, 600_000], n)),
        offline: n % 5 === 0,
        latitude: pick([0, -23.5, 48], n),
        publicUrl: n % 4 === 0,
        tags: {
          create: TAGS.filter((_, index) => (n >> index) & 1)
            .slice(0, 3)
            .map((tag, position) => ({ tag, position, tenantId: ana.tenant })),
        },
      },
    });
  }
  devices = (await ana.call("getDevices", { query: { per_page: 100 } })).body;
  expect(devices).toHaveLength(33);
});

const FIELDS = [
  "name",
  "identity.mac",
  "info.id",
  "info.pretty_name",
  "info.arch",
  "online",
  "status",
  "public_url",
  "tags",
  "position.latitude",
  "namespace",
  "last_seen",
  "unknown",
  "info.unknown",
  "constructor",
];
const text = fc.oneof(
  fc.constantFrom(
    ...NAMES,
    ...TAGS,
    "%",
    "_",
    "0%",
    "%0",
    "a_",
    "_b",
    "A",
    "lab",
    "accepted",
    "\\",
    "'",
    '"',
    "00:0",
  ),
  fc.string({ maxLength: 3, unit: "grapheme-ascii" }),
);
const scalar = fc.oneof(
  text,
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(0, 1, -23.5, 48, 1e300, 3e9, 0.5),
);
const anyValue = fc.oneof(scalar, fc.subarray(TAGS, { maxLength: 3 }));
const condition = fc
  .oneof(
    fc.record({
      operator: fc.constant("contains"),
      value: fc.oneof(text, fc.subarray(TAGS), fc.array(scalar, { maxLength: 2 })),
    }),
    fc.record({ operator: fc.constantFrom("eq", "ne"), value: anyValue }),
    fc.record({
      operator: fc.constant("bool"),
      value: fc.constantFrom(true, false, "true", "false", "t", "f", "1", "0"),
    }),
    fc.record({
      operator: fc.constant("gt"),
      value: fc.constantFrom(-100, -23.5, 0, 0.5, 47.9, 48, "0", "-24", 1e300),
    }),
    fc.record({ operator: fc.constantFrom("lt", "like", ""), value: anyValue }),
  )
  .chain((comparison) =>
    fc.constantFrom(...FIELDS).map((name) => property(name, comparison.operator, comparison.value) as Item),
  );
const filterItems = fc.array(
  fc.oneof(
    { arbitrary: condition, weight: 3 },
    { arbitrary: fc.constantFrom("and", "or", "xor").map((name) => operator(name) as Item), weight: 1 },
  ),
  { maxLength: 6 },
);

test("device filters choose what the rules say, in the list's order, page by page", async () => {
  await fc.assert(
    fc.asyncProperty(filterItems, fc.integer({ min: 1, max: 3 }), async (items, page) => {
      const expected = devices.filter((item) => matches(item, items, "and"));
      const { status, body, headers } = await ana.call("getDevices", {
        query: { filter: encodeFilter(items), per_page: 10, page },
      });
      expect(status).toBe(200);
      expect(headers.get("x-total-count")).toBe(String(expected.length));
      const uids = (list: Wire[]) => list.map((item) => item.uid);
      expect(uids(body)).toEqual(uids(expected.slice((page - 1) * 10, page * 10)));
    }),
    { numRuns: 400 },
  );
});

test.each([
  ["100%", ["100%"]],
  ["%", ["100%"]],
  ["A_B", ["a_b"]],
  ["_", ["a_b"]],
  ["GATE", ["Gate-1", "gate"]],
  ["\\", ["b\\s"]],
  ["'", ["o'hara"]],
])("contains %j means just that, whatever the case", async (value, names) => {
  const filter = encodeFilter([property("name", "contains", value)]);
  const { body } = await ana.call("getDevices", { query: { filter, per_page: 100 } });
  const found = new Set(body.map((item: Wire) => item.name));
  expect([...found].sort()).toEqual(names);
});

test("times are equal to their text on the wire", async () => {
  const [first] = devices;
  const filter = encodeFilter([property("last_seen", "eq", first?.last_seen)]);
  const { body } = await ana.call("getDevices", { query: { filter, per_page: 100 } });
  expect(body).toEqual(devices.filter((item) => item.last_seen === first?.last_seen));
});

// What JSON can write and JavaScript cannot hold.
const infinite = (comparison: string, json: string) =>
  Buffer.from(JSON.stringify([property("max_devices", comparison, "#")]).replace('"#"', json)).toString(
    "base64",
  );

test.each([
  ["no base64", "***"],
  ["unpadded", "W10"],
  ["no JSON", Buffer.from("[").toString("base64")],
  ["no array", Buffer.from("{}").toString("base64")],
  ["an unknown type", encodeFilter([{ type: "group", params: { name: "and" } }])],
  ["no parameters", encodeFilter([{ type: "property" }])],
  ["contains a number", encodeFilter([property("name", "contains", 5)])],
  ["bool of a word", encodeFilter([property("online", "bool", "yes")])],
  ["bool of a number", encodeFilter([property("online", "bool", 1)])],
  ["gt of a word", encodeFilter([property("name", "gt", "abc")])],
  ["gt of a fraction in text", encodeFilter([property("name", "gt", "1.5")])],
  ["more items than sensible", encodeFilter(Array(101).fill(operator("and")))],
  ["contains an array of arrays", encodeFilter([property("tags", "contains", [["edge"]])])],
  ["eq of an object", encodeFilter([property("name", "eq", { $gt: "" })])],
  ["ne of an infinite number", infinite("ne", "1e400")],
  ["eq of an infinite number", infinite("eq", "-1e400")],
  ["gt of an infinite number", infinite("gt", "1e400")],
  ["contains an infinite number", infinite("contains", "[1e400]")],
  ["gt of a text that is infinite", encodeFilter([property("name", "gt", "9".repeat(400))])],
])("%s is 400", async (_, filter) => {
  for (const id of ["getDevices", "getPublicKeys", "getNamespaces"] as const) {
    const { status, body } = await ana.call(id, { query: { filter } });
    expect(status).toBe(400);
    expect(body.message).toMatch(/^filter: /);
  }
});

describe("the work of one filter is bounded:", () => {
  type Id = "getDevices" | "getPublicKeys" | "getNamespaces";
  const list = async (items: unknown[], id: Id = "getDevices") => {
    const { status, body } = await ana.call(id, { query: { filter: encodeFilter(items) } });
    return [status, body.message];
  };
  const times = (count: number, comparison: string, value: unknown, name = "name") =>
    Array(count).fill(property(name, comparison, value));
  const refused = (message: RegExp) => [400, expect.stringMatching(message)];
  const SEARCHES = /^filter: must search at most 20 times/;
  const COMPARISONS = /^filter: must compare at most 100 values/;

  test("100 comparisons of columns, those of arrays counted one by one", async () => {
    expect(await list(times(100, "eq", "gate"))).toEqual([200, undefined]);
    expect(await list([...times(50, "eq", "gate"), ...times(25, "ne", ["a", "b"])])).toEqual([
      200,
      undefined,
    ]);
    expect(await list([...times(50, "eq", "gate"), ...times(26, "ne", ["a", "b"])])).toEqual(
      refused(COMPARISONS),
    );
  });

  test("an array of 1001 values, which SQLite has no expression for", async () => {
    for (const comparison of ["contains", "eq", "ne"]) {
      const values = Array.from({ length: 1001 }, (_, n) => n);
      expect(await list(times(1, comparison, values))).toEqual(refused(/an array of at most 100 of string/));
      expect((await list(times(1, comparison, values.slice(0, 100))))[0]).toBe(200);
    }
  });

  test("20 searches in texts, lists, counts and other tables", async () => {
    expect(await list(times(20, "contains", "a"))).toEqual([200, undefined]);
    expect(await list(times(21, "contains", "a"))).toEqual(refused(SEARCHES));
    expect(await list(times(21, "contains", "a", "unknown"))).toEqual(refused(SEARCHES));
    expect(await list([...times(80, "eq", "a"), ...times(20, "contains", "a")])).toEqual([200, undefined]);
    expect(await list([...times(10, "contains", "a"), ...times(11, "ne", "edge", "tags")])).toEqual(
      refused(SEARCHES),
    );
    expect(await list(times(7, "contains", ["a", "b", "c"], "tags"))).toEqual(refused(SEARCHES));
    expect(await list(times(21, "gt", 1, "device_count"), "getNamespaces")).toEqual(refused(SEARCHES));
    expect(await list(times(21, "eq", "key", "public_key"))).toEqual(refused(SEARCHES));
  });

  test.each([
    ["getDevices", "public_key"],
    ["getPublicKeys", "data"],
    ["getNamespaces", "settings.connection_announcement"],
  ] as const)("no search in large texts: %s by %s", async (id, name) => {
    expect(await list(times(1, "contains", "a", name), id)).toEqual(
      refused(new RegExp(`^filter: contains cannot search the text of ${name.replace(".", "\\.")}`)),
    );
    expect((await list(times(1, "eq", "a", name), id))[0]).toBe(200);
  });

  test("no sorting by them: the default order", async () => {
    const query = { per_page: 100, sort_by: "public_key" };
    expect((await ana.call("getDevices", { query })).body).toEqual(devices);
  });
});

test("on keys and namespaces, properties at the end are joined by or; closed groups still hold", async () => {
  const eve = await app.user("eve", "eves");
  const device = await enrol(app, eve.tenant, "00:00:00:00:00:99");
  await eve.call("updateDeviceTags", { params: { uid: device.uid }, body: { tags: ["edge"] } });
  const keys = [
    { name: "laptop", filter: { hostname: "^gate" } },
    { name: "desktop", filter: { tags: ["edge"] } },
    { name: "phone", filter: { hostname: ".*" } },
  ];
  for (const [n, key] of keys.entries()) {
    const blob = Buffer.from(ED25519.split(" ")[1] ?? "", "base64");
    blob[blob.length - 1] = n;
    const data = Buffer.from(`ssh-ed25519 ${blob.toString("base64")}`).toString("base64");
    const made = await eve.call("createPublicKey", { body: { ...key, username: ".*", data } });
    expect(made.status).toBe(200);
    app.pass(1);
  }
  const names = async (items: unknown[]) => {
    const query = { filter: encodeFilter(items) };
    const { body } = await eve.call("getPublicKeys", { query });
    return valuesOf(body, "name");
  };
  expect(await names([property("name", "eq", "laptop"), property("name", "eq", "phone")])).toEqual([
    "laptop",
    "phone",
  ]);
  expect(
    await names([
      property("name", "contains", "top"),
      operator("and"),
      property("name", "eq", "laptop"),
      property("name", "eq", "phone"),
    ]),
  ).toEqual(["laptop"]);
  expect(await names([property("filter.tags", "contains", ["edge"])])).toEqual(["desktop"]);
  expect(await names([property("filter.hostname", "ne", "^gate")])).toEqual(["desktop", "phone"]);
  const spaces = async (items: unknown[]) =>
    (await eve.call("getNamespaces", { query: { filter: encodeFilter(items) } })).body.length;
  expect(await spaces([property("name", "contains", "EVE")])).toBe(1);
  expect(await spaces([property("settings.session_record", "bool", "t"), property("name", "eq", "x")])).toBe(
    1,
  );
  expect(await spaces([property("members.id", "contains", [eve.id])])).toBe(1);
  expect(await spaces([property("devices_count", "gt", 0)])).toBe(0);
  expect(await spaces([property("max_devices", "gt", "-2")])).toBe(1);
});
