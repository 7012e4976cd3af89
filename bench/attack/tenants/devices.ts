// Attacks by the devices of a namespace: their tags, names, filters, lists and reports.
import { addDevices, DEVICES, hostileUid } from "./deviceRows.ts";
import { type Attacker, call, reading, type TenantCase } from "./tenantCase.ts";

/** Returns a tag of the largest length. */
const longTag = (index: number): string => String(index).padStart(255, "x");

const everywhere = ["everywhere1", "everywhere2", "everywhere3"] as const;
const deleted = ["deleted1", "deleted2", "deleted3"] as const;

/** The text of a device's fields, and a search that compares almost all of it at each place and finds nothing. */
const TEXT = "a".repeat(255);
const SEARCHES = 20;
const COMPARISONS = 100;
const search = (index: number): string => `${"a".repeat(120 + index)}b`;

const encoded = (filter: readonly object[]): string =>
  encodeURIComponent(Buffer.from(JSON.stringify(filter)).toString("base64"));

const property = (name: string, operator: string, value: unknown) => ({
  type: "property",
  params: { name, operator, value },
});

/** The most expensive filter: the largest numbers of searches and of compared values, of which none matches. */
const EXPENSIVE = encoded([
  ...Array.from({ length: SEARCHES }, (_, index) =>
    property(index % 2 ? "info.pretty_name" : "info.id", "contains", search(index)),
  ),
  property(
    "info.pretty_name",
    "eq",
    Array.from({ length: COMPARISONS - SEARCHES }, (_, index) => `${index}`),
  ),
  { type: "operator", params: { name: "or" } },
]);

/** A filter whose conditions are queries of the tags of each device. */
const BY_TAGS = encoded([
  ...Array.from({ length: SEARCHES }, (_, index) => property("tags", "contains", `${index}b`)),
  { type: "operator", params: { name: "or" } },
]);

/** Names of the largest length, which a search by name finds in its index. */
const nameOf = (index: number): string => `abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-${index}`;
const BY_NAME = encoded([
  property("name", "contains", "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-"),
]);

const page = (query: string): string => `/api/devices?per_page=100&${query}`;

let renamed = 0;

/** Renames a tag, and waits for the result before the next name. */
function rename(attacker: Attacker): Promise<number> {
  renamed += 1;
  const [from, to] = renamed % 2 ? ["renamed1", "renamed2"] : ["renamed2", "renamed1"];
  return call(attacker, "PUT", `/api/tags/${from}`, { tag: to });
}

/** Sends the largest report of a device. */
const report =
  ({ pool, tenantId, count }: Attacker) =>
  async (index: number) => {
    const body = JSON.stringify({
      info: {
        id: TEXT,
        pretty_name: TEXT,
        version: TEXT.slice(0, 64),
        arch: TEXT.slice(0, 64),
        platform: "native",
      },
      sessions: Array.from({ length: 1000 }, (_, session) => hostileUid(tenantId, session)),
      hostname: `report-${index % 64}`,
      identity: { mac: `02:00:00:00:01:${(index % 64).toString(16).padStart(2, "0")}` },
      public_key: "k".repeat(4096),
      tenant_id: tenantId,
    });
    const headers = { "content-type": "application/json" };
    const response = await pool.request({ method: "POST", path: "/api/devices/auth", headers, body });
    await response.body.dump();
    count(response.statusCode);
  };
let reports = 0;

export const DEVICE_CASES = {
  tagRename: {
    title: "renaming a tag of 20,000 devices",
    parallel: 1,
    seed: (seeding) => addDevices(seeding, { tagsOf: () => ["renamed1", everywhere[1], everywhere[2]] }),
    run: rename,
  },
  tagDelete: {
    title: "deleting 3 tags of 20,000 devices, one after the other",
    parallel: 1,
    seed: (seeding) => addDevices(seeding, { tagsOf: () => deleted }),
    async run(attacker) {
      for (const tag of deleted) await call(attacker, "DELETE", `/api/tags/${tag}`);
      await new Promise(() => {});
    },
  },
  tagList: reading("lists of 60,000 tags of 255 characters", ["/api/tags"], {
    seed: (seeding) =>
      addDevices(seeding, {
        tagsOf: (index) => [longTag(index * 3), longTag(index * 3 + 1), longTag(index * 3 + 2)],
      }),
  }),
  deviceFilter: reading(
    "lists of 20,000 devices with 20 searches of texts of 255 characters and 80 compared values",
    [page(`filter=${EXPENSIVE}`)],
    { parallel: 16, seed: (seeding) => addDevices(seeding, { text: TEXT }) },
  ),
  deviceFilterTags: reading(
    "lists of 20,000 devices with 20 searches of their tags",
    [page(`filter=${BY_TAGS}`)],
    {
      parallel: 16,
      seed: (seeding) => addDevices(seeding, { tagsOf: () => everywhere }),
    },
  ),
  deviceNames: reading(
    "searches by a part of the name that 20,000 names of 64 characters have, sorted by name",
    [page(`filter=${BY_NAME}&sort_by=name`)],
    { parallel: 16, seed: (seeding) => addDevices(seeding, { nameOf }) },
  ),
  devicePages: reading(
    "pages of 100 of 20,000 devices with the longest keys, texts and tags",
    [page("page=1"), page("page=100&sort_by=name"), page(`page=${DEVICES / 100}`)],
    {
      parallel: 16,
      seed: (seeding) =>
        addDevices(seeding, {
          text: TEXT,
          publicKey: "k".repeat(4096),
          tagsOf: () => [longTag(1), longTag(2), longTag(3)],
        }),
    },
  ),
  reports: {
    title: "reports of 64 devices with the longest keys, texts and 1,000 sessions",
    parallel: 16,
    run(attacker) {
      reports += 1;
      return report(attacker)(reports);
    },
  },
} as const satisfies Readonly<Record<string, TenantCase>>;
