import { createHash } from "node:crypto";
import { publicOperations } from "@gatehouse-access/sdk/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { expectError } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { type CallOptions, ED25519, enroll, type TestUser } from "../http/testApp.ts";

type Id = keyof typeof publicOperations;
type Table = "namespace" | "member" | "publicKey" | "firewallRule" | "apiKey" | "deviceTag" | "tunnel";

const KEY = "0b6f7c1e-first";

let eve: TestUser;
let guest: TestUser;
const devices = new Map<string, string>();
const { app, ana } = withAppAndUser();
beforeEach(async () => {
  eve = await app.user("eve", "eves");
  guest = await app.user("guest");
  const connector = { id: "a", pretty_name: "A", version: "v", arch: "amd64", platform: "connector" };
  for (const user of [ana, eve]) {
    const { uid } = await enroll(app, user.tenant, "00:00:00:00:00:01", { info: connector });
    devices.set(user.id, uid);
  }
});

interface Creation {
  readonly id: Id;
  readonly table: Table;
  /** Builds the n-th request. Requests with different numbers have different values. */
  readonly request: (user: TestUser, n: number) => CallOptions;
  /** Returns a request that changes the created object of the user ana, without deleting it. */
  readonly change: (created: Record<string, string>) => [Id, CallOptions];
  readonly remove: (created: Record<string, string>) => [Id, CallOptions];
}

const ofDevice = (user: TestUser) => ({ uid: devices.get(user.id) ?? "" });
const secretOf = (user: TestUser) => `c2a1f0de-7a51-4f2e-9c0b-${user.id.slice(0, 12)}`;

const tagCreation = (id: "createDeviceTag" | "createContainerTag"): Creation => ({
  id,
  table: "deviceTag",
  // This request ignores the number. The response of the operation contains no values, so different requests would have
  // equal responses.
  request: (user) => ({ params: ofDevice(user), body: { tag: "edge" } }),
  change: () => ["updateDeviceTags", { params: ofDevice(ana), body: { tags: ["core", "edge"] } }],
  remove: () => ["deleteDeviceTag", { params: { ...ofDevice(ana), tag: "edge" } }],
});

const creations: Creation[] = [
  {
    id: "createNamespace",
    table: "namespace",
    request: (user, n) => ({
      body: { name: `second-${user.username}`, type: n === 1 ? "team" : "personal" },
    }),
    change: (created) => [
      "editNamespace",
      { params: { tenant: created.tenant_id ?? "" }, body: { settings: { session_record: false } } },
    ],
    remove: (created) => ["deleteNamespace", { params: { tenant: created.tenant_id ?? "" } }],
  },
  {
    id: "inviteMember",
    table: "member",
    request: (user, n) => ({
      params: { tenant: user.tenant },
      body: { email: guest.email, role: n === 1 ? "observer" : "operator" },
    }),
    change: () => [
      "updateMember",
      { params: { tenant: ana.tenant, uid: guest.id }, body: { role: "administrator" } },
    ],
    remove: () => ["removeMember", { params: { tenant: ana.tenant, uid: guest.id } }],
  },
  {
    id: "createPublicKey",
    table: "publicKey",
    request: (_, n) => ({
      body: {
        name: `key ${n}`,
        username: ".*",
        // If the Idempotency-Key is known, the service returns the existing object and does not check whether the tags
        // exist. A repeated request can therefore contain a tag that no device has. A new request cannot.
        filter: n === 1 ? { hostname: ".*" } : { tags: ["unused"] },
        data: Buffer.from(ED25519).toString("base64"),
      },
    }),
    change: (created) => [
      "updatePublicKey",
      {
        params: { fingerprint: created.fingerprint ?? "" },
        body: { name: "renamed", username: "root", filter: { hostname: "^gate" } },
      },
    ],
    remove: (created) => ["deletePublicKey", { params: { fingerprint: created.fingerprint ?? "" } }],
  },
  {
    id: "createFirewallRule",
    table: "firewallRule",
    request: (_, n) => ({ body: ruleBody(n) }),
    change: (created) => ["updateFirewallRule", { params: { id: created.id ?? "" }, body: ruleBody(9) }],
    remove: (created) => ["deleteFirewallRule", { params: { id: created.id ?? "" } }],
  },
  {
    id: "createApiKey",
    table: "apiKey",
    request: (user, n) => ({ body: { name: `key-${n}`, expires_at: 30, key: secretOf(user) } }),
    change: () => ["updateApiKey", { params: { key: "key-1" }, body: { name: "renamed", role: "observer" } }],
    remove: () => ["deleteApiKey", { params: { key: "key-1" } }],
  },
  {
    id: "createTunnel",
    table: "tunnel",
    request: (user, n) => ({ params: ofDevice(user), body: { host: "127.0.0.1", port: n, ttl: 60 } }),
    // No operation changes a tunnel, so this request changes the device of the tunnel.
    change: () => ["updateDevice", { params: ofDevice(ana), body: { name: "renamed" } }],
    remove: (created) => [
      "deleteTunnel",
      { params: { uid: created.device ?? "", address: created.address ?? "" } },
    ],
  },
  tagCreation("createDeviceTag"),
  tagCreation("createContainerTag"),
];

function ruleBody(priority: number) {
  return { action: "deny", active: true, filter: { hostname: "." }, priority, source_ip: ".", username: "." };
}

const created = (table: Table): Promise<{ creationKey: string | null }[]> =>
  // biome-ignore lint/suspicious/noExplicitAny: the tables' types differ, the column is the same
  (app.services.db[table] as any).findMany({ where: { creationKey: { not: null } } });

function withKey(options: CallOptions, user: TestUser, key: string): CallOptions {
  return { ...options, token: user.token, headers: { "Idempotency-Key": key } };
}

test("every operation with a key is tested here", () => {
  const taking = Object.values(publicOperations).filter((operation) => operation.idempotencyKey);
  expect(taking.map(({ id }) => id).sort()).toEqual(creations.map(({ id }) => id).sort());
});

describe.each(creations)("$id", ({ id, table, request, change, remove }) => {
  const create = (n = 1, user = ana, key = KEY) => app.call(id, withKey(request(user, n), user, key));
  /** Calls an operation as the user ana, with a token for the namespace in the request's path. */
  const callAsAna = async ([other, options]: [Id, CallOptions]) => {
    const params = { tenant: options.params?.tenant ?? ana.tenant };
    const { token } = (await ana.call("getNamespaceToken", { params })).body;
    return app.call(other, { ...options, token });
  };

  test("repetition with its key returns the object, and changes nothing", async () => {
    const first = await create();
    expect(first.status).toBe(200);
    const stored = await created(table);
    const again = await create(2);
    expect([again.status, again.body?.name]).toEqual([200, first.body?.name]);
    expect(await created(table)).toEqual(stored);
    expect(stored).toHaveLength(1);
    expect(stored[0]?.creationKey).toBe(createHash("sha256").update(KEY).digest("hex"));
  });

  test("repetition after a change returns the changed object", async () => {
    const first = await create();
    expect((await callAsAna(change(first.body))).status).toBe(200);
    const stored = await created(table);
    expect(stored).toHaveLength(1);
    const again = await create();
    expect(again.status).toBe(200);
    expect(await created(table)).toEqual(stored);
    if (stored[0] && "name" in stored[0]) expect(again.body.name).toBe(stored[0].name);
  });

  test("creates a new object after the earlier one was deleted", async () => {
    const first = await create();
    expect((await callAsAna(remove(first.body))).status).toBe(200);
    expect(await created(table)).toHaveLength(0);
    expect((await create()).status).toBe(200);
    expect(await created(table)).toHaveLength(1);
  });

  test("creates a separate object for the key of another owner or namespace", async () => {
    await create();
    const other = await create(1, eve);
    expect(other.status).toBe(200);
    expect(await created(table)).toHaveLength(2);
  });

  test("creates one object for five concurrent requests, and returns it to all", async () => {
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => create()));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(
      new Set(answers.map(({ body }) => body?.tenant_id + body?.fingerprint + body?.id + body?.address)).size,
    ).toBe(1);
    expect(await created(table)).toHaveLength(1);
  });

  test.each([["", "a b", "tab\there", "é", "a".repeat(256)]])("rejects keys like %j", async (...keys) => {
    for (const key of keys) {
      expectError(
        await create(1, ana, key),
        400,
        "Idempotency-Key must be 1 to 255 visible ASCII characters",
        { label: key },
      );
    }
    expect(await created(table)).toHaveLength(0);
    expect((await create(1, ana, "!~".repeat(127))).status).toBe(200);
  });

  test("requires the permission of the operation with every key", async () => {
    await create();
    const { status } = await app.call(id, { ...withKey(request(ana, 1), ana, KEY), token: "garbage" });
    expect(status).toBe(401);
    if (publicOperations[id].scope === "user") return;
    const observer = await app.user("observer");
    const params = { tenant: ana.tenant };
    const body = { email: observer.email, role: "observer" };
    await ana.call("inviteMember", { params, body });
    const { token } = (await observer.call("getNamespaceToken", { params })).body;
    expect((await app.call(id, { ...withKey(request(ana, 1), ana, KEY), token })).status).toBe(403);
  });
});

test("creates an object for each request without a key or with a different key", async () => {
  const body = ruleBody(1);
  for (let n = 0; n < 2; n += 1) await ana.call("createFirewallRule", { body });
  for (const key of ["one", "two"]) await app.call("createFirewallRule", withKey({ body }, ana, key));
  expect(await app.services.db.firewallRule.count()).toBe(4);
});

test("ignores the key in operations that support no key", async () => {
  const { body } = await ana.call("createFirewallRule", { body: ruleBody(1) });
  const update = { params: { id: body.id }, body: ruleBody(2) };
  expect((await app.call("updateFirewallRule", withKey(update, ana, "a b"))).status).toBe(200);
});
