import { type Operation, type Operations, operations } from "@gatehouse-access/sdk/contract";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  encodeFilter,
  enrol,
  operator,
  property,
  startApp,
  type TestApp,
  type TestUser,
} from "../http/testApp.ts";
import { openRecordingSqlite, type RecordingDatabase } from "./queryPlans.ts";

type Id = keyof Operations;

/** Rows of each kind in each of two namespaces. */
const ROWS = 2000;

let app: TestApp;
let database: RecordingDatabase;
let ana: TestUser;

beforeAll(async () => {
  app = await startApp({ edition: "cloud", maximumPendingDevices: 10 * ROWS }, async (location) => {
    if (!("file" in location)) throw new Error("these are SQLite's plans");
    database = await openRecordingSqlite(location.file);
    return database;
  });
  ana = await app.user("ana", "lab");
  const eve = await app.user("eve", "eves");
  for (const user of [ana, eve]) await fill(user);
});
afterAll(() => app.stop());

const uidOf = (tenantId: string, n: number) => `${tenantId.slice(0, 8)}${String(n).padStart(56, "0")}`;

async function fill({ id, tenant: tenantId }: TestUser): Promise<void> {
  const { db } = app.services;
  const now = app.services.now();
  const numbers = Array.from({ length: ROWS }, (_, n) => n);
  const at = (n: number) => new Date(now.getTime() - n * 1000);
  const tagged = (n: number) => ({ tenantId, tag: n % 10 === 0 ? "edge" : "core", position: 0 });
  const uid = (n: number) => uidOf(tenantId, n);
  const fingerprint = (n: number) => n.toString(16).padStart(32, "0").match(/../g)?.join(":") ?? "";
  await db.device.createMany({
    data: numbers.map((n) => ({
      uid: uid(n),
      tenantId,
      name: `host-${n}`,
      mac: `mac-${n}`,
      infoId: "debian",
      infoPrettyName: "Debian",
      infoVersion: "v0.19.0",
      infoArch: "amd64",
      infoPlatform: n % 10 === 0 ? "connector" : "native",
      publicKey: "k".repeat(400),
      status: n % 3 === 0 ? "accepted" : "pending",
      statusUpdatedAt: now,
      createdAt: now,
      lastSeen: at(n),
    })),
  });
  await db.deviceTag.createMany({ data: numbers.map((n) => ({ ...tagged(n), deviceUid: uid(n) })) });
  await db.tunnel.createMany({
    data: numbers.map((n) => ({
      ...{
        tenantId,
        deviceUid: uid(n % 2),
        address: uid(n).slice(0, 8) + uid(n).slice(-24),
        host: "::1",
        port: 80,
        ttl: 60,
      },
      ...{ createdAt: at(n), expiresAt: at(-60 * n) },
    })),
  });
  await db.connector.createMany({
    data: numbers.map((n) => ({
      ...{ tenantId, uid: crypto.randomUUID(), enable: n % 2 === 0, secure: false },
      ...{ address: "engine", port: 2375, createdAt: at(n) },
    })),
  });
  await db.announcement.createMany({
    data: numbers.map((n) => ({ uuid: crypto.randomUUID(), title: "News", content: "Text", date: at(n) })),
  });
  await db.publicKey.createMany({
    data: numbers.map((n) => ({
      tenantId,
      fingerprint: fingerprint(n),
      name: `key-${n}`,
      data: "AAAA",
      username: ".*",
      hostname: null,
      createdAt: at(n),
    })),
  });
  await db.publicKeyTag.createMany({
    data: numbers.map((n) => ({ ...tagged(n), fingerprint: fingerprint(n) })),
  });
  await db.firewallRule.createMany({
    data: numbers.map((n) => ({
      tenantId,
      action: "deny",
      active: true,
      priority: n,
      sourceIp: ".*",
      username: ".*",
      hostname: ".*",
    })),
  });
  await db.apiKey.createMany({
    data: numbers.map((n) => ({
      tenantId,
      digest: `${tenantId}${n}`,
      name: `key-${n}`,
      role: "observer",
      createdBy: id,
      expiresIn: BigInt(n),
      createdAt: now,
      updatedAt: now,
    })),
  });
  await db.namespace.createMany({
    data: numbers.map((n) => ({
      tenantId: crypto.randomUUID(),
      name: `${tenantId.slice(0, 8)}-${n}`,
      ownerId: id,
      createdAt: at(n),
    })),
  });
  await db.auditEntry.createMany({
    data: numbers.map((n) => ({
      ...{ tenantId, at: at(n), requestId: "", address: "", actorKind: "user", actorId: id, actorName: "" },
      ...{ operation: "renameDevice", objectKind: "device", objectId: uid(n) },
    })),
  });
  const spaces = await db.namespace.findMany({ where: { ownerId: id, tenantId: { not: tenantId } } });
  await db.member.createMany({
    data: spaces.map((space) => ({ tenantId: space.tenantId, userId: id, role: "owner", addedAt: now })),
  });
}

interface Form {
  readonly name: string;
  readonly query: Readonly<Record<string, string | number>>;
  /** The order is one that no index has: that of a field which was asked for, or of rows found by a tag. */
  readonly sorted?: boolean;
  /** All rows of this table are everybody's: an index gives their order and number. */
  readonly whole?: string;
}

const filtered = (...items: unknown[]) => ({ filter: encodeFilter(items) });
const DEFAULT: Form = { name: "as it is", query: {} };
const DEEP: Form = { name: "deep inside", query: { page: 15, per_page: 100 } };

const DEVICES: readonly Form[] = [
  DEFAULT,
  DEEP,
  ...["accepted", "pending", "removed"].map((status) => ({ name: status, query: { status } })),
  { name: "oldest report first", query: { order_by: "asc" } },
  { name: "by name", query: { sort_by: "name" }, sorted: true },
  { name: "by online", query: { sort_by: "online" }, sorted: true },
  { name: "name is", query: filtered(property("name", "eq", "host-7")), sorted: true },
  { name: "name contains", query: filtered(property("name", "contains", "7")) },
  { name: "online", query: filtered(property("online", "bool", true)) },
  { name: "tag", query: filtered(property("tags", "contains", ["edge"])), sorted: true },
  { name: "tags", query: filtered(property("tags", "eq", ["edge", "core"])), sorted: true },
  { name: "not the tag", query: filtered(property("tags", "ne", "edge")) },
  { name: "part of a tag", query: filtered(property("tags", "contains", "dg")), sorted: true },
  {
    name: "any of",
    query: filtered(property("tags", "contains", ["edge"]), property("name", "eq", "x"), operator("or")),
  },
  { name: "namespace", query: filtered(property("namespace", "eq", "lab")) },
];

const LISTS: Readonly<Partial<Record<Id, readonly Form[]>>> = {
  getDevices: DEVICES,
  getContainers: DEVICES,
  getTags: [DEFAULT],
  getPublicKeys: [
    DEFAULT,
    DEEP,
    { name: "name is", query: filtered(property("name", "eq", "key-7")) },
    { name: "name contains", query: filtered(property("name", "contains", "7")) },
    { name: "tag", query: filtered(property("filter.tags", "contains", ["edge"])) },
    { name: "tags", query: filtered(property("filter.tags", "eq", ["edge"])) },
  ],
  getFirewallRules: [DEFAULT, DEEP],
  listTunnels: [DEFAULT, DEEP],
  connectorList: [DEFAULT, DEEP, { name: "enabled", query: { enable: "true" } }],
  listAnnouncements: [DEFAULT, DEEP, { name: "oldest first", query: { order_by: "asc" } }].map((form) => ({
    ...form,
    whole: "Announcement",
  })),
  getAuditTrail: [
    DEFAULT,
    DEEP,
    { name: "since", query: { since: new Date(0).toISOString() } },
    { name: "of one kind", query: { kind: "device" } },
  ],
  listApiKeys: [
    DEFAULT,
    DEEP,
    { name: "by name", query: { sort_by: "name", order_by: "asc" } },
    { name: "by role", query: { sort_by: "role" }, sorted: true },
  ],
  getNamespaces: [
    // One's namespaces come from the memberships, so their order is made after they are read.
    { ...DEFAULT, sorted: true },
    { ...DEEP, sorted: true },
    { name: "name contains", query: filtered(property("name", "contains", "7")), sorted: true },
    { name: "member", query: filtered(property("members.id", "contains", ["x"])), sorted: true },
    { name: "devices", query: filtered(property("device_count", "gt", 1)), sorted: true },
  ],
};

test("a new device is known to be new, and the waiting ones are counted, by an index alone", async () => {
  database.takeQueries();
  await enrol(app, ana.tenant, "00:00:00:00:00:01");
  const plans = await Promise.all(database.takeQueries().map((query) => database.planOf(query)));
  const counts = plans.filter((plan) => /^SELECT COUNT/.test(plan.text));
  expect(counts).toHaveLength(1);
  expect(counts[0]?.text).toMatch(/SEARCH main\.Device USING COVERING INDEX .*status=\?/);
  expect(plans.flatMap((plan) => plan.scans)).toEqual([]);
});

test("every list of the contract is here", () => {
  const lists = Object.values(operations as Record<string, Operation>)
    .filter(({ method, success }) => method === "GET" && success.headers.includes("X-Total-Count"))
    .map(({ id }) => id);
  expect(Object.keys(LISTS).sort()).toEqual(lists.sort());
});

describe.each(Object.entries(LISTS))("%s", (id, forms) => {
  test.each(forms)("reads by an index: $name", async ({ query, sorted = false, whole }) => {
    database.takeQueries();
    const params = { tenant: ana.tenant, uid: uidOf(ana.tenant, 0) };
    const { status } = await app.call(id as Id, { token: ana.token, params, query });
    expect(status).toBe(200);
    const queries = database.takeQueries();
    expect(queries.length).toBeGreaterThanOrEqual(2);
    for (const asked of queries) {
      const plan = await database.planOf(asked);
      const expected = whole !== undefined && plan.text.includes(" INDEX ") ? [whole] : [];
      expect(plan.scans, plan.text).toEqual(expected);
      // The tags of one page's rows may be sorted, the members of its namespaces, and the few rows that a filter found.
      if (!sorted && !/^WITH found|`position` ASC|`addedAt` ASC/.test(asked.sql))
        expect(plan.sorts, plan.text).toBe(false);
    }
  });
});
