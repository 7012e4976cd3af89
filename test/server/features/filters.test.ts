import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { device } from "../db/rows.ts";
import { expectError } from "../http/answers.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import {
  ED25519,
  encodeFilter,
  enroll,
  operator,
  property,
  type TestUser,
  valuesOf,
} from "../http/testApp.ts";
import { fieldOf, type Item, matches, type Wire } from "./filterModel.ts";

type Id = "getDevices" | "getContainers" | "getPublicKeys" | "getNamespaces";

let ana: TestUser;
const ROWS = 23;
const TAGS = ["edge", "core", "Edge2"];
const NAMES = ["gate", "Gate-1", "100%", "1000", "a_b", "axb", "edge", "o'hara", 'q"uote', "b\\s", ""];

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;
const tagsOf = (n: number) => TAGS.filter((_, index) => (n >> index) & 1);

async function fill({ id, tenant: tenantId }: TestUser): Promise<void> {
  const { db } = app.services;
  const now = app.services.now().getTime();
  const at = (n: number) => new Date(now - 1000 * Math.floor(n / 2));
  await db.tag.createMany({ data: TAGS.map((name) => ({ id: `id of ${name}`, tenantId, name })) });
  for (let n = 0; n < ROWS; n += 1) {
    const tags = tagsOf(n).map((tag, position) => ({ tagId: `id of ${tag}`, position }));
    const hex = (n + 1).toString(16);
    for (const [kind, infoPlatform] of ["connector", "native"].entries()) {
      await db.device.create({
        data: device(tenantId, `${kind}${hex.padStart(63, "0")}`, at(n), {
          mac: pick(["", "aa"], n),
          name: pick(NAMES, n),
          publicKey: "k",
          infoId: pick(["debian", "arch", "100"], n),
          infoPrettyName: pick(NAMES, n + 2),
          infoVersion: "v",
          infoArch: pick(["amd64", "arm64"], n),
          infoPlatform,
          status: pick(["pending", "accepted", "rejected", "removed"], n),
          createdAt: at(n + 1),
          lastSeen: at(n * 40),
          offline: n % 5 === 0,
          latitude: pick([0, -23.5, 48], n),
          publicUrl: n % 4 === 0,
          tagUses: { create: tags.map((tag) => ({ ...tag, tenantId })) },
        }),
      });
    }
    await db.publicKey.create({
      data: {
        tenantId,
        fingerprint: hex.padStart(32, "0").match(/../g)?.join(":") ?? "",
        name: pick(NAMES, n),
        data: "AAAA",
        username: pick(["root", ".*"], n),
        createdAt: at(n),
        hostname: tags.length === 0 ? pick([".*", "^gate"], n) : null,
        tagUses: { create: tags },
      },
    });
    await db.namespace.create({
      data: {
        tenantId: crypto.randomUUID(),
        name: `${pick(["lab", "edge", "gate"], n)}-${n}`,
        ownerId: id,
        type: pick(["team", "personal"], n),
        sessionRecord: n % 3 === 0,
        maxDevices: pick([-1, 3, 10], n),
        createdAt: at(n),
        members: { create: [{ userId: id, role: pick(["owner", "observer"], n), addedAt: at(n) }] },
      },
    });
  }
}

const all = new Map<Id, Wire[]>();
const list = (id: Id, query: Record<string, string | number>) => ana.call(id, { query });
const app = withSharedApp();
beforeAll(async () => {
  // A device's online state depends on the current time. The clock stops, so that the state is the same in all
  // responses of a run.
  app.stopClock();
  ana = await app.user("ana", "lab");
  await fill(ana);
  for (const id of Object.keys(LISTS) as Id[]) {
    const { body } = await list(id, { per_page: 100 });
    expect(body.length, id).toBeGreaterThan(15);
    all.set(id, body);
  }
});

const DEVICE_FIELDS = [
  "name",
  "identity.mac",
  "info.pretty_name",
  "online",
  "status",
  "public_url",
  "tags",
  "created_at",
  "position.latitude",
  "namespace",
  "info.platform",
  "unknown",
  "info.id",
  "info.arch",
  "last_seen",
  "info.unknown",
  "constructor",
];
const LISTS: Readonly<Record<Id, { fields: readonly string[]; trailing: "and" | "or"; runs?: number }>> = {
  getDevices: { fields: DEVICE_FIELDS, trailing: "and", runs: 250 },
  getContainers: { fields: DEVICE_FIELDS, trailing: "and" },
  getPublicKeys: {
    fields: [
      "name",
      "username",
      "fingerprint",
      "filter.hostname",
      "filter.tags",
      "created_at",
      "filter",
      "constructor",
    ],
    trailing: "or",
  },
  getNamespaces: {
    fields: [
      "name",
      "owner",
      "type",
      "max_devices",
      "device_count",
      "devices_count",
      "settings.session_record",
      "members.role",
      "members.status",
      "created_at",
      "unknown",
    ],
    trailing: "or",
  },
};

const text = fc.oneof(
  fc.constantFrom(
    ...NAMES,
    ...TAGS,
    "a",
    "E",
    "GATE",
    "%",
    "_",
    "0%",
    "%0",
    "a_",
    "_b",
    "\\",
    "'",
    '"',
    ".*",
    "root",
    "owner",
    "observer",
    "accepted",
    "team",
    "true",
    "lab-0",
    "lab",
  ),
  fc.string({ maxLength: 3, unit: "grapheme-ascii" }),
);
const scalar = fc.oneof(text, fc.boolean(), fc.constantFrom(0, 1, -1, 3, -23.5, 48, 1e300, 3e9, 0.5, null));
const comparisonOf = (tags: fc.Arbitrary<string[]>, arrays: fc.Arbitrary<unknown[]>) =>
  fc.oneof(
    fc.record({ name: fc.constant("contains"), value: fc.oneof(text, tags, arrays) }),
    fc.record({ name: fc.constantFrom("eq", "ne"), value: fc.oneof(scalar, tags) }),
    fc.record({
      name: fc.constant("bool"),
      value: fc.constantFrom(true, false, "true", "false", "t", "f", "1", "0"),
    }),
    fc.record({
      name: fc.constant("gt"),
      value: fc.constantFrom(-100, -24, -23.5, -1, 0, 0.5, 2.5, 9, 47.9, 48, 1e300, "0", "3", "-24", "-2"),
    }),
    // The service ignores comparison operators that it does not know.
    fc.record({ name: fc.constantFrom("lt", "like", ""), value: scalar }),
  );
const ofDevices = comparisonOf(fc.subarray(TAGS), fc.array(scalar, { maxLength: 2 }));
// A key with a filter by host name has no tags, and other keys have at least one tag. An empty array would not
// distinguish these keys.
const ofOthers = comparisonOf(fc.subarray(TAGS, { minLength: 1 }), fc.constant<string[]>([]));

describe.each(Object.entries(LISTS) as [Id, (typeof LISTS)[Id]][])(
  "%s",
  (id, { fields, trailing, runs = 120 }) => {
    const condition = fc
      .tuple(fc.constantFrom(...fields), fields === DEVICE_FIELDS ? ofDevices : ofOthers)
      .map(([field, { name, value }]) => property(field, name, value) as Item);
    const joint = fc.constantFrom("and", "or", "xor").map((name) => operator(name) as Item);
    const items = fc.array(fc.oneof({ arbitrary: condition, weight: 3 }, { arbitrary: joint, weight: 1 }), {
      maxLength: 6,
    });

    test("selects the items that the rules define, in order, page by page", { tags: ["long"] }, async () => {
      const paging = { page: fc.integer({ min: 1, max: 3 }), perPage: fc.integer({ min: 1, max: 12 }) };
      await fc.assert(
        fc.asyncProperty(items, paging.page, paging.perPage, async (filter, page, perPage) => {
          const expected = (all.get(id) ?? []).filter((item) => matches(item, filter, trailing));
          const query = { filter: encodeFilter(filter), page, per_page: perPage };
          const { status, body, headers } = await list(id, query);
          expect(status).toBe(200);
          expect(headers.get("x-total-count")).toBe(String(expected.length));
          expect(body).toEqual(expected.slice((page - 1) * perPage, page * perPage));
        }),
        { numRuns: runs },
      );
    });
  },
);

describe.each(["getDevices", "getContainers"] as const)("%s", (id) => {
  const SORTABLE = ["name", "online", "created_at", "last_seen", "status", "position.latitude", "public_url"];
  const IGNORED = ["tags", "public_key", "unknown", "constructor", "name; --"];

  test("sorts by any field in both directions, and its pages form the list", { tags: ["long"] }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...SORTABLE, ...IGNORED),
        fc.constantFrom("asc", "desc", "sideways"),
        fc.integer({ min: 4, max: 12 }),
        async (field, order, perPage) => {
          const sorting = { sort_by: field, order_by: order };
          const { body } = await list(id, { ...sorting, per_page: 100 });
          const key = SORTABLE.includes(field) ? field : "last_seen";
          const keys = body.map((item: Wire) => fieldOf(item, key));
          const sorted = [...keys].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
          expect(keys).toEqual(order === "asc" ? sorted : sorted.reverse());
          const pages: Wire[] = [];
          for (let page = 1; pages.length < body.length; page += 1) {
            const answer = await list(id, { ...sorting, page, per_page: perPage });
            expect(answer.headers.get("x-total-count")).toBe(String(body.length));
            expect(answer.body.length).toBe(Math.min(perPage, body.length - pages.length));
            pages.push(...answer.body);
          }
          expect(pages).toEqual(body);
          expect(new Set(pages.map(({ uid }) => uid)).size).toBe(all.get(id)?.length);
        },
      ),
      { numRuns: 40 },
    );
  });
});

test("limits page numbers to their bounds, and returns an empty page past the end", async () => {
  for (const id of Object.keys(LISTS) as Id[]) {
    const total = all.get(id)?.length ?? 0;
    const sizes = async (query: Record<string, string | number>) => {
      const { body, headers } = await list(id, query);
      return [body.length, headers.get("x-total-count")];
    };
    expect(await sizes({})).toEqual([10, String(total)]);
    expect(await sizes({ per_page: 0 })).toEqual([10, String(total)]);
    expect(await sizes({ per_page: -5 })).toEqual([1, String(total)]);
    expect(await sizes({ per_page: 5000, page: -3 })).toEqual([total, String(total)]);
    expect(await sizes({ page: 1000 })).toEqual([0, String(total)]);
    expect((await list(id, { per_page: "ten" })).status).toBe(422);
  }
});

test.each([
  ["100%", ["100%"]],
  ["%", ["100%"]],
  ["A_B", ["a_b"]],
  ["_", ["a_b"]],
  ["GATE", ["Gate-1", "gate"]],
  ["\\", ["b\\s"]],
  ["'", ["o'hara"]],
])("contains %j matches exactly this text in any case", async (value, names) => {
  const filter = encodeFilter([property("name", "contains", value)]);
  const { body } = await list("getDevices", { filter, per_page: 100 });
  const foundNames = new Set(body.map((item: Wire) => item.name));
  expect([...foundNames].sort()).toEqual(names);
});

test("compares times with their text form", async () => {
  const devices = all.get("getDevices") ?? [];
  const time = devices[0]?.last_seen;
  const filter = encodeFilter([property("last_seen", "eq", time)]);
  const { body } = await list("getDevices", { filter, per_page: 100 });
  expect(body).toEqual(devices.filter((item) => item.last_seen === time));
});

// Numbers that are valid in JSON, but that JavaScript cannot represent.
const infinite = (comparison: string, json: string) =>
  Buffer.from(JSON.stringify([property("max_devices", comparison, "#")]).replace('"#"', json)).toString(
    "base64",
  );

test.each([
  ["text other than base64", "***"],
  ["unpadded", "W10"],
  ["text other than JSON", Buffer.from("[").toString("base64")],
  ["JSON other than an array", Buffer.from("{}").toString("base64")],
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
])("rejects %s with 400", async (_, filter) => {
  for (const id of ["getDevices", "getPublicKeys", "getNamespaces"] as const) {
    expectError(await list(id, { filter }), 400, /^filter: /);
  }
});

describe("limits the work of one filter to", () => {
  const filtered = async (items: unknown[], id: Id = "getDevices") => {
    const { status, body } = await list(id, { filter: encodeFilter(items) });
    return [status, body.message];
  };
  const times = (count: number, comparison: string, value: unknown, name = "name") =>
    Array(count).fill(property(name, comparison, value));
  const refused = (message: RegExp) => [400, expect.stringMatching(message)];
  const SEARCHES = /^filter must contain at most 20 searches/;
  const COMPARISONS = /^filter: a filter can compare at most 100 values/;

  test("100 comparisons of columns, with each value of an array counted", async () => {
    expect(await filtered(times(100, "eq", "gate"))).toEqual([200, undefined]);
    expect(await filtered([...times(50, "eq", "gate"), ...times(25, "ne", ["a", "b"])])).toEqual([
      200,
      undefined,
    ]);
    expect(await filtered([...times(50, "eq", "gate"), ...times(26, "ne", ["a", "b"])])).toEqual(
      refused(COMPARISONS),
    );
  });

  test("arrays of 100 values, because of SQLite's limit", async () => {
    for (const comparison of ["contains", "eq", "ne"]) {
      const values = Array.from({ length: 1001 }, (_, n) => n);
      expect(await filtered(times(1, comparison, values))).toEqual(
        refused(/an array of at most 100 of string/),
      );
      expect((await filtered(times(1, comparison, values.slice(0, 100))))[0]).toBe(200);
    }
  });

  test("20 searches in texts, lists, counts and other tables", async () => {
    expect(await filtered(times(20, "contains", "a"))).toEqual([200, undefined]);
    expect(await filtered(times(21, "contains", "a"))).toEqual(refused(SEARCHES));
    expect(await filtered(times(21, "contains", "a", "unknown"))).toEqual(refused(SEARCHES));
    expect(await filtered([...times(80, "eq", "a"), ...times(20, "contains", "a")])).toEqual([
      200,
      undefined,
    ]);
    expect(await filtered([...times(10, "contains", "a"), ...times(11, "ne", "edge", "tags")])).toEqual(
      refused(SEARCHES),
    );
    expect(await filtered(times(7, "contains", ["a", "b", "c"], "tags"))).toEqual(refused(SEARCHES));
    expect(await filtered(times(21, "gt", 1, "device_count"), "getNamespaces")).toEqual(refused(SEARCHES));
    expect(await filtered(times(21, "eq", "key", "public_key"))).toEqual(refused(SEARCHES));
  });

  test.each([
    ["getDevices", "public_key"],
    ["getPublicKeys", "data"],
    ["getNamespaces", "settings.connection_announcement"],
  ] as const)("texts of limited size: %s by %s", async (id, name) => {
    expect(await filtered(times(1, "contains", "a", name), id)).toEqual(
      refused(new RegExp(`^filter: contains cannot search the text of ${name.replace(".", "\\.")}`)),
    );
    expect((await filtered(times(1, "eq", "a", name), id))[0]).toBe(200);
  });

  test("fields of limited size in sorting; others use the default order", async () => {
    const { body } = await list("getDevices", { per_page: 100, sort_by: "public_key" });
    expect(body).toEqual(all.get("getDevices"));
  });
});

test("joins the last properties of keys and namespaces with or, and requires closed groups", async () => {
  const eve = await app.user("eve", "eves");
  const device = await enroll(app, eve.tenant, "00:00:00:00:00:99");
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
    const created = await eve.call("createPublicKey", { body: { ...key, username: ".*", data } });
    expect(created.status).toBe(200);
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
