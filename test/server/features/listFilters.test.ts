import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { withSharedApp } from "../http/lab.ts";
import { encodeFilter, operator, property, type TestUser } from "../http/testApp.ts";
import { fieldOf, type Item, matches, type Wire } from "./filterModel.ts";

type Id = "getDevices" | "getContainers" | "getPublicKeys" | "getNamespaces";

let ana: TestUser;
const ROWS = 23;
const TAGS = ["edge", "core", "edge2"];
const NAMES = ["gate", "gatepost", "axle", "edge", "0", "core7", "gate"];

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;
const tagsOf = (n: number) => TAGS.filter((_, index) => (n >> index) & 1);

async function fill({ id, tenant: tenantId }: TestUser): Promise<void> {
  const { db } = app.services;
  const now = app.services.now().getTime();
  const at = (n: number) => new Date(now - 1000 * Math.floor(n / 2));
  for (let n = 0; n < ROWS; n += 1) {
    const tags = tagsOf(n).map((tag, position) => ({ tag, position }));
    const hex = (n + 1).toString(16);
    for (const [kind, infoPlatform] of ["connector", "native"].entries()) {
      await db.device.create({
        data: {
          ...{
            uid: `${kind}${hex.padStart(63, "0")}`,
            tenantId,
            mac: pick(["", "aa"], n),
            name: pick(NAMES, n),
          },
          ...{ infoId: "debian", infoPrettyName: pick(NAMES, n + 2), infoVersion: "v", infoArch: "arm" },
          ...{
            infoPlatform,
            publicKey: "k",
            status: pick(["pending", "accepted", "rejected", "removed"], n),
          },
          ...{ statusUpdatedAt: at(n), createdAt: at(n + 1), lastSeen: at(n * 40), offline: n % 5 === 0 },
          ...{ latitude: pick([0, -23.5, 48], n), publicUrl: n % 4 === 0 },
          tags: { create: tags.map((tag) => ({ ...tag, tenantId })) },
        },
      });
    }
    await db.publicKey.create({
      data: {
        ...{
          tenantId,
          fingerprint: hex.padStart(32, "0").match(/../g)?.join(":") ?? "",
          name: pick(NAMES, n),
        },
        ...{ data: "AAAA", username: pick(["root", ".*"], n), createdAt: at(n) },
        hostname: tags.length === 0 ? pick([".*", "^gate"], n) : null,
        tags: { create: tags },
      },
    });
    await db.namespace.create({
      data: {
        tenantId: crypto.randomUUID(),
        ...{
          name: `${pick(["lab", "edge", "gate"], n)}-${n}`,
          ownerId: id,
          type: pick(["team", "personal"], n),
        },
        ...{ sessionRecord: n % 3 === 0, maxDevices: pick([-1, 3, 10], n), createdAt: at(n) },
        members: { create: [{ userId: id, role: pick(["owner", "observer"], n), addedAt: at(n) }] },
      },
    });
  }
}

const all = new Map<Id, Wire[]>();
const list = (id: Id, query: Record<string, string | number>) => ana.call(id, { query });
const app = withSharedApp();
beforeAll(async () => {
  // Who is online depends on the time, which the answers of one run must share.
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
  ...["name", "identity.mac", "info.pretty_name", "online", "status", "public_url", "tags", "created_at"],
  ...["position.latitude", "namespace", "info.platform", "unknown"],
];
const LISTS: Readonly<Record<Id, { fields: readonly string[]; trailing: "and" | "or" }>> = {
  getDevices: { fields: DEVICE_FIELDS, trailing: "and" },
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
      ...["name", "owner", "type", "max_devices", "device_count", "devices_count", "settings.session_record"],
      ...["members.role", "members.status", "created_at", "unknown"],
    ],
    trailing: "or",
  },
};

const text = fc.constantFrom(
  ...NAMES,
  ...TAGS,
  ...["a", "E", "GATE", "%", "_", ".*", "root", "owner", "observer", "accepted", "team", "true", "lab-0", ""],
);
const scalar = fc.oneof(text, fc.boolean(), fc.constantFrom(0, -1, 3, -23.5, 48, 1e300), fc.constant(null));
// A key for a host name has no tags, and none of another one is without: an empty array says nothing of either.
const tagArray = fc.subarray(TAGS, { minLength: 1 });
const comparison = fc.oneof(
  fc.record({ name: fc.constant("contains"), value: fc.oneof(text, tagArray, fc.constant<string[]>([])) }),
  fc.record({ name: fc.constantFrom("eq", "ne"), value: fc.oneof(scalar, tagArray) }),
  fc.record({
    name: fc.constant("bool"),
    value: fc.constantFrom(true, false, "true", "false", "t", "f", "1", "0"),
  }),
  fc.record({ name: fc.constant("gt"), value: fc.constantFrom(-24, -1, 0, 2.5, 9, "3", "-2") }),
  // Not known, and therefore ignored.
  fc.record({ name: fc.constantFrom("lt", "like"), value: scalar }),
);

describe.each(Object.entries(LISTS) as [Id, (typeof LISTS)[Id]][])("%s", (id, { fields, trailing }) => {
  const condition = fc
    .tuple(fc.constantFrom(...fields), comparison)
    .map(([field, { name, value }]) => property(field, name, value) as Item);
  const joint = fc.constantFrom("and", "or", "xor").map((name) => operator(name) as Item);
  const items = fc.array(fc.oneof({ arbitrary: condition, weight: 3 }, { arbitrary: joint, weight: 1 }), {
    maxLength: 5,
  });

  test("chooses what the rules say, in its order, page by page", async () => {
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
      { numRuns: 120 },
    );
  });
});

describe.each(["getDevices", "getContainers"] as const)("%s", (id) => {
  const SORTABLE = ["name", "online", "created_at", "last_seen", "status", "position.latitude", "public_url"];
  const IGNORED = ["tags", "public_key", "unknown", "constructor", "name; --"];

  test("is sorted by any field, either way, and its pages are the list", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...SORTABLE, ...IGNORED),
        fc.constantFrom("asc", "desc", "sideways"),
        fc.integer({ min: 1, max: 9 }),
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

test("the page's numbers are moved into their bounds, and a page past the end is empty", async () => {
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
