import { publicOperations } from "@gatehouse-access/sdk/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { behaviorOf } from "../../../server/app.ts";
import { createOnce } from "../../../server/changes/writeObject.ts";
import { findRow, insertRows } from "../../../server/db/sql/rows.ts";

import { sshKeyLine } from "../../provider/support/programs.ts";
import { expectError } from "../http/answers.ts";
import { testApp, withAppAndUser } from "../http/appOfTest.ts";
import { ED25519, enroll, PUBLIC_KEY, valuesOf } from "../http/testApp.ts";

// For each kind of object, the tests send the same create request twice with the same Idempotency-Key.

const { app, ana } = withAppAndUser();

const keyed = (key: string, token = ana.token) => ({ token, headers: { "idempotency-key": key } });

describe("an API key", () => {
  const create = (more: object = {}) =>
    app.call("createApiKey", { ...keyed("k"), body: { name: "ci-key", expires_at: 30, ...more } });
  const works = async (apiKey: string) => (await app.call("getDevices", { apiKey })).status === 200;
  const names = async () => valuesOf((await ana.call("listApiKeys")).body, "name");

  test("is refused with another secret, and the first secret still works", async () => {
    const first = (await create()).body;
    for (const again of [await create(), await create({ name: "other" })]) {
      expect([again.status, again.body.message]).toEqual([
        409,
        "this Idempotency-Key already created the API key ci-key with a different secret; send a new Idempotency-Key",
      ]);
    }
    expect([await works(first.id), await names()]).toEqual([true, ["ci-key"]]);
  });

  test("is returned in its current state with the same secret", async () => {
    const key = "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10";
    const first = (await create({ key, role: "operator" })).body;
    const rename = { token: ana.token, params: { key: "ci-key" }, body: { name: "renamed" } };
    expect((await app.call("updateApiKey", rename)).status).toBe(200);
    const { body } = await create({ key, role: "observer", expires_at: -1 });
    expect(body).toMatchObject({ id: key, name: "renamed", role: "operator", expires_in: first.expires_in });
  });

  test("is created once by three concurrent requests, and its secret works", async () => {
    const answers = await Promise.all([create(), create(), create()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const created = answers.find(({ status }) => status === 200);
    expect([await works(created?.body.id), await names()]).toEqual([true, ["ci-key"]]);
  });
});

describe("a membership", () => {
  const invite = (email: string, service = app, owner = ana, token = owner.token) =>
    service.call("inviteMember", {
      ...keyed("k", token),
      params: { tenant: owner.tenant },
      body: { email, role: "observer" },
    });

  test("is refused for another e-mail, with the member's id", async () => {
    const [bob, eve] = [await app.user("bob"), await app.user("eve")];
    expect((await invite(bob.email)).status).toBe(200);
    expect((await invite(bob.email.toUpperCase())).status).toBe(200);
    expectError(
      await invite(eve.email),
      409,
      `this Idempotency-Key already created the membership of the user ${bob.id}; send a new Idempotency-Key`,
    );
    expect(await app.services.db.member.count({ where: { userId: eve.id } })).toBe(0);
  });

  test("is a conflict if another request created it", async () => {
    const bob = await app.user("bob");
    const body = { email: bob.email, role: "observer" };
    await ana.call("inviteMember", { body });
    expect((await invite(bob.email)).status).toBe(409);
  });

  test("is renewed with the same key after it expired", async () => {
    const cloud = await testApp({ edition: "cloud" });
    const [owner, guest] = [await cloud.user("owner", "lab"), await cloud.user("guest")];
    const expiry = async () =>
      (await cloud.services.db.member.findFirst({ where: { userId: guest.id } }))?.expiresAt;
    expect((await invite(guest.email, cloud, owner)).status).toBe(200);
    const first = await expiry();
    expect((await invite(guest.email, cloud, owner)).status).toBe(200);
    expect(await expiry()).toEqual(first);
    cloud.pass(7 * 24 * 3600 + 1);
    const login = { body: { username: "owner", password: "correct-horse" } };
    const { token } = (await cloud.call("login", login)).body;
    expect((await invite(guest.email, cloud, owner, token)).status).toBe(200);
    expect((await expiry())?.getTime()).toBeGreaterThan(first?.getTime() ?? Number.POSITIVE_INFINITY);
  });
});

describe("a tag of a device", () => {
  const add = (uid: string, tag: string) =>
    app.call("createDeviceTag", { ...keyed("k"), params: { uid }, body: { tag } });
  let first: string;
  let second: string;
  beforeEach(async () => {
    first = (await enroll(app, ana.tenant, "00:00:00:00:00:01")).uid;
    second = (await enroll(app, ana.tenant, "00:00:00:00:00:02")).uid;
    expect((await add(first, "edge")).status).toBe(200);
  });

  test("is refused if the key created another tag, on this device and others", async () => {
    for (const answer of [await add(first, "core"), await add(second, "edge")]) {
      expect(answer.status).toBe(409);
      expect(answer.body.message).toBe(
        `this Idempotency-Key already created the tag edge of the device ${first}; send a new Idempotency-Key`,
      );
    }
    expect(await app.services.db.deviceTag.count()).toBe(1);
  });

  test("keeps its key when other tags change", async () => {
    const params = { uid: first };
    await ana.call("createDeviceTag", { params, body: { tag: "core" } });
    await ana.call("updateDeviceTags", { params, body: { tags: ["new", "edge"] } });
    await ana.call("deleteDeviceTag", { params: { ...params, tag: "new" } });
    expect((await add(first, "edge")).status).toBe(200);
  });

  test("is reported by its new name after a rename", async () => {
    await ana.call("renameTag", { params: { tag: "edge" }, body: { tag: "rim" } });
    expectError(
      await add(first, "edge"),
      409,
      `this Idempotency-Key already created the tag rim of the device ${first}; send a new Idempotency-Key`,
    );
    expect((await add(first, "rim")).status).toBe(200);
  });
});

describe("a namespace", () => {
  const create = (name: string) => app.call("createNamespace", { ...keyed("k"), body: { name } });

  test("is returned even if the user owns the maximum", async () => {
    await app.services.db.user.update({ where: { id: ana.id }, data: { maxNamespaces: 2 } });
    const { tenant_id } = (await create("second")).body;
    expect((await create("Second")).body).toMatchObject({ tenant_id, name: "second" });
    const other = await app.call("createNamespace", { ...keyed("other"), body: { name: "third" } });
    expect(other.status).toBe(403);
  });

  test("is not returned to its former owner", async () => {
    const bob = await app.user("bob");
    const { tenant_id } = (await create("second")).body;
    await app.services.db.namespace.update({ where: { tenantId: tenant_id }, data: { ownerId: bob.id } });
    expect((await create("second")).status).toBe(409);
    const { body } = await create("third");
    expect(body).toMatchObject({ name: "third", owner: ana.id });
    expect(body.tenant_id).not.toBe(tenant_id);
  });

  test("is refused if the key created another namespace, even after a rename", async () => {
    const { tenant_id } = (await create("second")).body;
    expectError(
      await create("third"),
      409,
      "this Idempotency-Key already created the namespace second; send a new Idempotency-Key",
    );
    const params = { tenant: tenant_id };
    const { token } = (await ana.call("getNamespaceToken", { params })).body;
    await app.call("editNamespace", { token, params, body: { name: "renamed" } });
    expect((await create("second")).body.message).toBe(
      "this Idempotency-Key already created the namespace renamed; send a new Idempotency-Key",
    );
    expect((await create("renamed")).body.tenant_id).toBe(tenant_id);
  });

  test("is a conflict if its name is taken, even with a key", async () => {
    expect((await create("lab")).status).toBe(409);
  });
});

test("refuses a public key if the Idempotency-Key created another public key, and keeps the other public key", async () => {
  const create = (line: string) => {
    const body = { ...PUBLIC_KEY, data: Buffer.from(line).toString("base64") };
    return app.call("createPublicKey", { ...keyed("k"), body });
  };
  const { fingerprint } = (await create(ED25519)).body;
  expectError(
    await create(sshKeyLine()),
    409,
    `this Idempotency-Key already created the public key ${fingerprint}; send a new Idempotency-Key`,
  );
  expect(await app.services.db.publicKey.findMany()).toMatchObject([{ fingerprint }]);
});

test("returns the first object to the slower of two concurrent requests", async () => {
  const { services } = app;
  const { tenant: tenantId } = ana;
  const rule = {
    tenantId,
    action: "deny",
    active: true,
    priority: 1,
    sourceIp: ".",
    username: ".",
    hostname: ".",
    creationKey: "digest",
  };
  const { id } = await services.db.firewallRule.create({ data: rule });
  const sender = {
    caller: { kind: "apikey", name: "test", tenant: tenantId, role: "owner" },
    tenant: tenantId,
    role: "owner",
  } as const;
  let reads = 0;
  const create = async (emptyReads: number) => {
    const { result } = await behaviorOf({}).write(services, {
      operation: { ...publicOperations.createFirewallRule, object: "firewallRule" },
      sender,
      params: {},
      body: {},
      ifMatch: undefined,
      isGuarded: false,
      creationKey: "digest",
      declaration: null,
      facts: { id: "", address: "" },
      identify: async () => sender,
      run: (inside, _, { repeated }) =>
        createOnce(
          { services: inside, creationKey: "digest", repeated },
          {
            taken: "is taken",
            find: async (tx) => {
              reads += 1;
              return reads <= emptyReads
                ? null
                : findRow(tx, "FirewallRule", { tenantId, creationKey: "digest" });
            },
            create: async (tx) => ((await insertRows(tx, "FirewallRule", [rule])) ? rule : null),
          },
        ),
    });
    return result as { id: number };
  };
  expect((await create(1)).id).toBe(id);
  reads = 0;
  await expect(create(2)).rejects.toThrow("is taken");
  expect(await services.db.firewallRule.count()).toBe(1);
});
