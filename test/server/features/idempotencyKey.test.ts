import { createHash } from "node:crypto";
import { publicOperations } from "@gatehouse-access/sdk/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { withLab } from "../http/lab.ts";
import { type CallOptions, ED25519, enroll, type TestUser } from "../http/testApp.ts";

type Id = keyof typeof publicOperations;
type Table = "namespace" | "member" | "publicKey" | "firewallRule" | "apiKey" | "deviceTag" | "tunnel";

const KEY = "0b6f7c1e-first";

let eve: TestUser;
let guest: TestUser;
const devices = new Map<string, string>();
const { app, ana } = withLab();
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
  /** A request; two that differ say so by their number. */
  readonly request: (user: TestUser, n: number) => CallOptions;
  /** Changes the object that ana made, without ending it. */
  readonly change: (made: Record<string, string>) => [Id, CallOptions];
  readonly remove: (made: Record<string, string>) => [Id, CallOptions];
}

const ofDevice = (user: TestUser) => ({ uid: devices.get(user.id) ?? "" });
const secretOf = (user: TestUser) => `c2a1f0de-7a51-4f2e-9c0b-${user.id.slice(0, 12)}`;

const tagCreation = (id: "createDeviceTag" | "createContainerTag"): Creation => ({
  id,
  table: "deviceTag",
  // Nothing is answered that could be compared, so a repeat has to say the same.
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
    change: (made) => [
      "editNamespace",
      { params: { tenant: made.tenant_id ?? "" }, body: { settings: { session_record: false } } },
    ],
    remove: (made) => ["deleteNamespace", { params: { tenant: made.tenant_id ?? "" } }],
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
        // What the repeat asks for need not be possible any more.
        filter: n === 1 ? { hostname: ".*" } : { tags: ["unused"] },
        data: Buffer.from(ED25519).toString("base64"),
      },
    }),
    change: (made) => [
      "updatePublicKey",
      {
        params: { fingerprint: made.fingerprint ?? "" },
        body: { name: "renamed", username: "root", filter: { hostname: "^gate" } },
      },
    ],
    remove: (made) => ["deletePublicKey", { params: { fingerprint: made.fingerprint ?? "" } }],
  },
  {
    id: "createFirewallRule",
    table: "firewallRule",
    request: (_, n) => ({ body: ruleBody(n) }),
    change: (made) => ["updateFirewallRule", { params: { id: made.id ?? "" }, body: ruleBody(9) }],
    remove: (made) => ["deleteFirewallRule", { params: { id: made.id ?? "" } }],
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
    // Of a tunnel itself nothing can be changed.
    change: () => ["updateDevice", { params: ofDevice(ana), body: { name: "renamed" } }],
    remove: (made) => ["deleteTunnel", { params: { uid: made.device ?? "", address: made.address ?? "" } }],
  },
  tagCreation("createDeviceTag"),
  tagCreation("createContainerTag"),
];

function ruleBody(priority: number) {
  return { action: "deny", active: true, filter: { hostname: "." }, priority, source_ip: ".", username: "." };
}

const made = (table: Table): Promise<{ creationKey: string | null }[]> =>
  // biome-ignore lint/suspicious/noExplicitAny: the tables' types differ, the column is the same
  (app.services.db[table] as any).findMany({ where: { creationKey: { not: null } } });

function withKey(options: CallOptions, user: TestUser, key: string): CallOptions {
  return { ...options, token: user.token, headers: { "Idempotency-Key": key } };
}

test("all operations that take a key are tried here", () => {
  const taking = Object.values(publicOperations).filter((operation) => operation.idempotencyKey);
  expect(taking.map(({ id }) => id).sort()).toEqual(creations.map(({ id }) => id).sort());
});

describe.each(creations)("$id", ({ id, table, request, change, remove }) => {
  const make = (n = 1, user = ana, key = KEY) => app.call(id, withKey(request(user, n), user, key));
  /** As ana, in the namespace that the operation is about. */
  const calling = async ([other, options]: [Id, CallOptions]) => {
    const params = { tenant: options.params?.tenant ?? ana.tenant };
    const { token } = (await ana.call("getNamespaceToken", { params })).body;
    return app.call(other, { ...options, token });
  };

  test("again under its key gives the object as it is, and changes nothing", async () => {
    const first = await make();
    expect(first.status).toBe(200);
    const stored = await made(table);
    const again = await make(2);
    expect([again.status, again.body?.name]).toEqual([200, first.body?.name]);
    expect(await made(table)).toEqual(stored);
    expect(stored).toHaveLength(1);
    expect(stored[0]?.creationKey).toBe(createHash("sha256").update(KEY).digest("hex"));
  });

  test("again after the object was changed gives the changed one", async () => {
    const first = await make();
    expect((await calling(change(first.body))).status).toBe(200);
    const stored = await made(table);
    expect(stored).toHaveLength(1);
    const again = await make();
    expect(again.status).toBe(200);
    expect(await made(table)).toEqual(stored);
    if (stored[0] && "name" in stored[0]) expect(again.body.name).toBe(stored[0].name);
  });

  test("makes a new object when the former one is gone", async () => {
    const first = await make();
    expect((await calling(remove(first.body))).status).toBe(200);
    expect(await made(table)).toHaveLength(0);
    expect((await make()).status).toBe(200);
    expect(await made(table)).toHaveLength(1);
  });

  test("under the key of another owner or namespace makes an own object", async () => {
    await make();
    const other = await make(1, eve);
    expect(other.status).toBe(200);
    expect(await made(table)).toHaveLength(2);
  });

  test("five times at once makes one object, and all are told of it", async () => {
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => make()));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(
      new Set(answers.map(({ body }) => body?.tenant_id + body?.fingerprint + body?.id + body?.address)).size,
    ).toBe(1);
    expect(await made(table)).toHaveLength(1);
  });

  test.each([["", "a b", "tab\there", "é", "a".repeat(256)]])("keys like %j are refused", async (...keys) => {
    for (const key of keys) {
      const { status, body } = await make(1, ana, key);
      expect([status, body.message], key).toEqual([
        400,
        "Idempotency-Key: must be 1 to 255 visible ASCII characters",
      ]);
    }
    expect(await made(table)).toHaveLength(0);
    expect((await make(1, ana, "!~".repeat(127))).status).toBe(200);
  });

  test("needs the permission of the operation, whatever the key", async () => {
    await make();
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

test("without a key, and with different ones, each creation makes an object", async () => {
  const body = ruleBody(1);
  for (let n = 0; n < 2; n += 1) await ana.call("createFirewallRule", { body });
  for (const key of ["one", "two"]) await app.call("createFirewallRule", withKey({ body }, ana, key));
  expect(await app.services.db.firewallRule.count()).toBe(4);
});

test("an operation that takes no key does not look at it", async () => {
  const { body } = await ana.call("createFirewallRule", { body: ruleBody(1) });
  const update = { params: { id: body.id }, body: ruleBody(2) };
  expect((await app.call("updateFirewallRule", withKey(update, ana, "a b"))).status).toBe(200);
});
