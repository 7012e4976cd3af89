import { beforeAll, expect, test } from "vitest";
import { insertDevices, uidOfMany } from "../db/manyDevices.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { encodeFilter, operator, property, type TestUser } from "../http/testApp.ts";

/** Number of devices. It exceeds the maximum number of candidates that a query reads from an index. */
const DEVICES = 6100;
const PER_PAGE = 100;

/**
 * The tags and their intervals: every n-th device has a tag with the interval n. All devices have `each`. So many
 * devices have `some` that the service does not count them directly. Few devices have `seldom`.
 */
const TAGS = { each: 1, some: 3, seldom: 20 };

interface Device {
  readonly uid: string;
  readonly name: string;
  readonly removed: boolean;
  readonly tags: readonly string[];
}

const app = withSharedApp();
let ana: TestUser;

const deviceOf = (n: number): Device => ({
  uid: uidOfMany(n),
  name: `host-${n}`,
  removed: n % 7 === 0,
  tags: Object.entries(TAGS).flatMap(([tag, every]) => (n % every === 0 ? [tag] : [])),
});

/** The devices in the order of lists. The uid decides the order of devices with equal times. */
const devices = Array.from({ length: DEVICES }, (_, n) => deviceOf(DEVICES - 1 - n));

async function fill({ tenant }: TestUser, first: number, end: number): Promise<void> {
  const { db } = app.services;
  await insertDevices(db, tenant, [first, end]);
  for (const [position, [tag, every]] of Object.entries(TAGS).entries()) {
    const tagId = `${tenant} ${tag}`;
    await db.tag.create({ data: { id: tagId, tenantId: tenant, name: tag } });
    await db.$executeRaw`INSERT INTO "DeviceTagUse" ("deviceUid", "tenantId", "tagId", "position")
      SELECT "uid", "tenantId", ${tagId}, CAST(${position} AS INTEGER) FROM "Device"
      WHERE "tenantId" = ${tenant} AND CAST(substr("uid", 50) AS INTEGER) % ${every} = 0`;
  }
}

beforeAll(async () => {
  ana = await app.user("ana", "lab");
  await fill(ana, 0, DEVICES);
  // The devices of another namespace must not match.
  await fill(await app.user("eve", "eves"), DEVICES, DEVICES + 200);
});

const tagged =
  (...tags: string[]) =>
  (device: Device) =>
    tags.every((tag) => device.tags.includes(tag));
const contains = (...tags: string[]) => property("tags", "contains", tags);

const FILTERS: readonly (readonly [what: string, items: unknown[], chosen: (device: Device) => boolean])[] = [
  ["a tag of all", [contains("each")], tagged("each")],
  ["a tag of many", [contains("some")], tagged("some")],
  ["a tag of few", [contains("seldom")], tagged("seldom")],
  ["a tag as a text", [property("tags", "eq", "seldom")], tagged("seldom")],
  ["two tags", [contains("seldom", "some")], tagged("seldom", "some")],
  [
    "exactly these tags",
    [property("tags", "eq", ["each", "seldom"])],
    (device) => device.tags.join() === "each,seldom",
  ],
  [
    "a tag, and another one in a group of its own",
    [contains("some"), operator("or"), contains("seldom")],
    tagged("some", "seldom"),
  ],
  [
    "one of two tags",
    [contains("seldom"), contains("some"), operator("or")],
    (device) => tagged("seldom")(device) || tagged("some")(device),
  ],
  [
    "a tag and a name",
    [contains("each"), property("name", "contains", "-77")],
    ({ name }) => name.includes("-77"),
  ],
  ["an unused tag", [contains("unused")], () => false],
];

test.each(FILTERS)("%s: returns the selected devices, their order and number", async (_, items, chosen) => {
  const expected = devices.filter((device) => !device.removed && chosen(device));
  const last = Math.max(1, Math.ceil(expected.length / PER_PAGE));
  for (const page of new Set([1, 2, last, last + 1])) {
    const query = { filter: encodeFilter(items), page, per_page: PER_PAGE };
    const { body, headers } = await ana.call("getDevices", { query });
    const uids = expected.slice((page - 1) * PER_PAGE, page * PER_PAGE).map(({ uid }) => uid);
    expect(body.map(({ uid }: Device) => uid)).toEqual(uids);
    expect(headers.get("x-total-count")).toBe(String(expected.length));
  }
});
