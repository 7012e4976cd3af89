import { type Operation, operations, takesIfMatch } from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { statusesOf } from "../http/answers.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { type CallOptions, DENY_RULE, ED25519, enroll, type TestUser } from "../http/testApp.ts";

type Id = keyof typeof operations;
type Call = readonly [id: Id, options: CallOptions];

let ana: TestUser;
let bob: TestUser;
let uid: string;
let fingerprint: string;
let rule: string;

const data = Buffer.from(`${ED25519}\n`).toString("base64");
const byTags = { tags: ["edge", "lab"] };

const app = withSharedApp();
beforeAll(async () => {
  ana = await app.user("ana", "lab");
  bob = await app.user("bob");
  const call = async (id: Id, options: CallOptions) => {
    const answer = await ana.call(id, options);
    expect(answer.status, `${id} ${answer.text}`).toBe(200);
    return answer.body;
  };
  const tenant = { tenant: ana.tenant };
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
  await call("updateDeviceTags", { params: { uid }, body: byTags });
  const key = { name: "key", username: "root", data, filter: byTags };
  ({ fingerprint } = await call("createPublicKey", { body: key }));
  rule = (await call("createFirewallRule", { body: { ...DENY_RULE, filter: byTags } })).id;
  await call("createApiKey", { body: { name: "deploy", expires_at: 30, role: "operator" } });
  await call("inviteMember", { params: tenant, body: { email: bob.email, role: "observer" } });
});

const list = async (id: Id) => (await ana.call(id)).body[0];
const device = async () => (await ana.call("getDevice", { params: { uid } })).body;
const namespace = async () => (await ana.call("getNamespace")).body;
const memberOf = (body: { members: { id: string; revision: string }[] }) =>
  body.members.find(({ id }) => id === bob.id)?.revision;

/**
 * For each kind of object, `read` returns the revision of an object, and `changes` returns two requests: one that
 * changes the object, and one that reverts the change.
 */
const kinds: Readonly<Record<string, { read(): Promise<string | undefined>; changes(): readonly Call[] }>> = {
  namespace: {
    read: async () => (await namespace()).revision,
    changes: () =>
      [true, false].map((on) => [
        "editNamespace",
        { params: { tenant: ana.tenant }, body: { settings: { session_record: !on } } },
      ]),
  },
  member: {
    read: async () => memberOf(await namespace()),
    changes: () =>
      ["operator", "observer"].map((role) => [
        "updateMember",
        { params: { tenant: ana.tenant, uid: bob.id }, body: { role } },
      ]),
  },
  device: {
    read: async () => (await device()).revision,
    changes: () =>
      ["one", "00-00-00-00-00-01"].map((name) => ["renameDevice", { params: { uid }, body: { name } }]),
  },
  deviceTags: {
    read: async () => (await device()).tags_revision,
    changes: () => [
      ["deleteDeviceTag", { params: { uid, tag: "lab" } }],
      ["createDeviceTag", { params: { uid }, body: { tag: "lab" } }],
    ],
  },
  publicKey: {
    read: async () => (await list("getPublicKeys")).revision,
    changes: () =>
      ["admin", "root"].map((username) => [
        "updatePublicKey",
        { params: { fingerprint }, body: { name: "key", username, filter: byTags } },
      ]),
  },
  firewallRule: {
    read: async () => (await list("getFirewallRules")).revision,
    changes: () => [
      ["removeFirewallRuleTag", { params: { id: rule }, body: { tag: "lab" } }],
      ["addFirewallRuleTag", { params: { id: rule }, body: { tag: "lab" } }],
    ],
  },
  apiKey: {
    read: async () => (await list("listApiKeys")).revision,
    changes: () =>
      ["observer", "operator"].map((role) => ["updateApiKey", { params: { key: "deploy" }, body: { role } }]),
  },
};

const send = ([id, options]: Call, ifMatch?: string) =>
  app.call(id, { token: ana.token, ...options, ...(ifMatch && { headers: { "if-match": ifMatch } }) });

describe.each(Object.keys(kinds))("the revision of a %s", (name) => {
  const kind = kinds[name];
  if (kind === undefined) throw new Error(name);
  const quoted = async () => `"${await kind.read()}"`;

  test("changes if declared values change, and reverts if they revert", async () => {
    const [change, back] = kind.changes();
    if (!change || !back) throw new Error("no changes");
    const first = await quoted();
    expect(first).toMatch(/^"[\w-]{22}"$/);
    const answer = await send(change);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("etag")).toBe(await quoted());
    expect(await quoted()).not.toBe(first);
    expect((await send(back)).headers.get("etag")).toBe(first);
    expect(await quoted()).toBe(first);
  });

  test("is required by If-Match: a write with another revision is refused and changes nothing", async () => {
    const [change, back] = kind.changes();
    if (!change || !back) throw new Error("no changes");
    const first = await quoted();
    const refused = await send(change, '"something-else"');
    expect(refused.status).toBe(412);
    expect(refused.headers.get("etag")).toBe(first);
    expect(await quoted()).toBe(first);
    expect((await send(change, `"something-else", ${first}`)).status).toBe(200);
    expect((await send(back, first)).status).toBe(412);
    expect((await send(back, "*")).status).toBe(200);
    expect((await send(change, first.replaceAll('"', ""))).status).toBe(412);
  });

  test("does not change with a heartbeat", async () => {
    const first = await quoted();
    app.pass(60);
    await enroll(app, ana.tenant, "00:00:00:00:00:01", {
      info: { id: "x", pretty_name: "x", version: "2", arch: "arm", platform: "native" },
    });
    expect(await quoted()).toBe(first);
  });
});

test("accepts one of concurrent writes with the same revision", async () => {
  const { revision } = await device();
  const write = (name: string) =>
    send(["renameDevice", { params: { uid }, body: { name } }], `"${revision}"`);
  expect(await statusesOf(["red", "green", "blue"].map(write))).toEqual([200, 412, 412]);
});

test("is independent of the order of tags", async () => {
  const tagged = async (tags: string[]) => {
    await send(["updateDeviceTags", { params: { uid }, body: { tags } }]);
    return (await device()).tags_revision;
  };
  expect(await tagged(["lab", "edge"])).toBe(await tagged(["edge", "lab"]));
});

test("is the ETag of an object's own answer", async () => {
  const [one, all, single] = [
    await ana.call("getDevice", { params: { uid } }),
    await ana.call("getNamespace"),
    await ana.call("getFirewallRule", { params: { id: rule } }),
  ];
  for (const { headers, body } of [one, all, single]) expect(headers.get("etag")).toBe(`"${body.revision}"`);
  expect((await ana.call("getDevices")).headers.get("etag")).toBeNull();
});

test("lets every write of an existing object accept If-Match and document 412", () => {
  const writes = Object.values(operations as Record<string, Operation>).filter(takesIfMatch);
  expect(writes.length).toBeGreaterThan(25);
  for (const operation of writes) expect(operation.errors, operation.id).toHaveProperty("412");
});
