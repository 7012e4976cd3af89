import { publicOperations } from "@gatehouse-access/sdk/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { behaviorOf } from "../../../server/app.ts";
import { createOnce } from "../../../server/changes/createOnce.ts";
import { findRow, insertRows } from "../../../server/db/sql/rows.ts";

import { sshKeyLine } from "../../provider/support/programs.ts";
import { testApp, withLab } from "../http/lab.ts";
import { ED25519, enroll, PUBLIC_KEY, valuesOf } from "../http/testApp.ts";

// What a repeat under one Idempotency-Key means where the objects differ from each other.

const { app, ana } = withLab();

const keyed = (key: string, token = ana.token) => ({ token, headers: { "idempotency-key": key } });

describe("an API key", () => {
  const make = (more: object = {}) =>
    app.call("createApiKey", { ...keyed("k"), body: { name: "ci-key", expires_at: 30, ...more } });
  const works = async (apiKey: string) => (await app.call("getDevices", { apiKey })).status === 200;
  const names = async () => valuesOf((await ana.call("listApiKeys")).body, "name");

  test("with another secret is refused, and the first one goes on working for whoever has it", async () => {
    const first = (await make()).body;
    for (const again of [await make(), await make({ name: "other" })]) {
      expect([again.status, again.body.message]).toEqual([
        409,
        "Idempotency-Key: created the API key ci-key with another secret",
      ]);
    }
    expect([await works(first.id), await names()]).toEqual([true, ["ci-key"]]);
  });

  test("whose secret the caller knows is the same one, as it is now", async () => {
    const key = "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10";
    const first = (await make({ key, role: "operator" })).body;
    const rename = { token: ana.token, params: { key: "ci-key" }, body: { name: "renamed" } };
    expect((await app.call("updateApiKey", rename)).status).toBe(200);
    const { body } = await make({ key, role: "observer", expires_at: -1 });
    expect(body).toMatchObject({ id: key, name: "renamed", role: "operator", expires_in: first.expires_in });
  });

  test("asked for three times at once is one, and its secret works", async () => {
    const answers = await Promise.all([make(), make(), make()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const made = answers.find(({ status }) => status === 200);
    expect([await works(made?.body.id), await names()]).toEqual([true, ["ci-key"]]);
  });
});

describe("a membership", () => {
  const invite = (email: string, service = app, owner = ana, token = owner.token) =>
    service.call("inviteMember", {
      ...keyed("k", token),
      params: { tenant: owner.tenant },
      body: { email, role: "observer" },
    });

  test("of another e-mail is refused, and names the member", async () => {
    const [bob, eve] = [await app.user("bob"), await app.user("eve")];
    expect((await invite(bob.email)).status).toBe(200);
    expect((await invite(bob.email.toUpperCase())).status).toBe(200);
    const { status, body } = await invite(eve.email);
    expect(status).toBe(409);
    expect(body.message).toBe(`Idempotency-Key: created the membership of the user ${bob.id}`);
    expect(await app.services.db.member.count({ where: { userId: eve.id } })).toBe(0);
  });

  test("that another request made is a conflict still", async () => {
    const bob = await app.user("bob");
    const body = { email: bob.email, role: "observer" };
    await ana.call("inviteMember", { params: { tenant: ana.tenant }, body });
    expect((await invite(bob.email)).status).toBe(409);
  });

  test("that nobody accepted in time is made anew under the same key", async () => {
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

  test("that is another one than the key made is refused, on this device and others", async () => {
    for (const answer of [await add(first, "core"), await add(second, "edge")]) {
      expect(answer.status).toBe(409);
      expect(answer.body.message).toBe(`Idempotency-Key: created the tag edge of the device ${first}`);
    }
    expect(await app.services.db.deviceTag.count()).toBe(1);
  });

  test("keeps its key when other tags come and go", async () => {
    const params = { uid: first };
    await ana.call("createDeviceTag", { params, body: { tag: "core" } });
    await ana.call("updateDeviceTags", { params, body: { tags: ["new", "edge"] } });
    await ana.call("deleteDeviceTag", { params: { ...params, tag: "new" } });
    expect((await add(first, "edge")).status).toBe(200);
  });

  test("that was renamed is named by its new name", async () => {
    await ana.call("renameTag", { params: { tag: "edge" }, body: { tag: "rim" } });
    const { status, body } = await add(first, "edge");
    expect([status, body.message]).toEqual([
      409,
      `Idempotency-Key: created the tag rim of the device ${first}`,
    ]);
    expect((await add(first, "rim")).status).toBe(200);
  });
});

describe("a namespace", () => {
  const make = (name: string) => app.call("createNamespace", { ...keyed("k"), body: { name } });

  test("is answered though no further one may be owned", async () => {
    await app.services.db.user.update({ where: { id: ana.id }, data: { maxNamespaces: 2 } });
    const { tenant_id } = (await make("second")).body;
    expect((await make("Second")).body).toMatchObject({ tenant_id, name: "second" });
    const other = await app.call("createNamespace", { ...keyed("other"), body: { name: "third" } });
    expect(other.status).toBe(403);
  });

  test("that has another owner now is not answered", async () => {
    const bob = await app.user("bob");
    const { tenant_id } = (await make("second")).body;
    await app.services.db.namespace.update({ where: { tenantId: tenant_id }, data: { ownerId: bob.id } });
    expect((await make("second")).status).toBe(409);
    const { body } = await make("third");
    expect(body).toMatchObject({ name: "third", owner: ana.id });
    expect(body.tenant_id).not.toBe(tenant_id);
  });

  test("that is not the one that the key made is refused, also after that one was renamed", async () => {
    const { tenant_id } = (await make("second")).body;
    const third = await make("third");
    expect([third.status, third.body.message]).toEqual([
      409,
      "Idempotency-Key: created the namespace second",
    ]);
    const params = { tenant: tenant_id };
    const { token } = (await ana.call("getNamespaceToken", { params })).body;
    await app.call("editNamespace", { token, params, body: { name: "renamed" } });
    expect((await make("second")).body.message).toBe("Idempotency-Key: created the namespace renamed");
    expect((await make("renamed")).body.tenant_id).toBe(tenant_id);
  });

  test("whose name is taken is a conflict, with a key too", async () => {
    expect((await make("lab")).status).toBe(409);
  });
});

test("a public key that is not the one that the Idempotency-Key made is refused, and that one stays", async () => {
  const make = (line: string) => {
    const body = { ...PUBLIC_KEY, data: Buffer.from(line).toString("base64") };
    return app.call("createPublicKey", { ...keyed("k"), body });
  };
  const { fingerprint } = (await make(ED25519)).body;
  const { status, body } = await make(sshKeyLine());
  expect([status, body.message]).toEqual([409, `Idempotency-Key: created the public key ${fingerprint}`]);
  expect(await app.services.db.publicKey.findMany()).toMatchObject([{ fingerprint }]);
});

test("of two requests that both find nothing, the slower one is given the other's object", async () => {
  const { services } = app;
  const { tenant: tenantId } = ana;
  const rule = {
    ...{ tenantId, action: "deny", active: true, priority: 1, sourceIp: ".", username: ".", hostname: "." },
    creationKey: "digest",
  };
  const { id } = await services.db.firewallRule.create({ data: rule });
  const sender = {
    caller: { kind: "apikey", name: "test", tenant: tenantId, role: "owner" },
    tenant: tenantId,
    role: "owner",
  } as const;
  let looked = 0;
  const make = async (blindFor: number) => {
    const { result } = await behaviorOf({}).write(services, {
      operation: { ...publicOperations.createFirewallRule, object: "firewallRule" },
      ...{ sender, params: {}, body: {}, ifMatch: undefined, creationKey: "digest" },
      declaration: null,
      facts: { id: "", address: "" },
      identify: async () => sender,
      run: (inside, _, { repeated }) =>
        createOnce(
          { services: inside, creationKey: "digest", repeated },
          {
            taken: "is taken",
            find: async (tx) => {
              looked += 1;
              return looked <= blindFor
                ? null
                : findRow(tx, "FirewallRule", { tenantId, creationKey: "digest" });
            },
            create: async (tx) => ((await insertRows(tx, "FirewallRule", [rule])) ? rule : null),
          },
        ),
    });
    return result as { id: number };
  };
  expect((await make(1)).id).toBe(id);
  looked = 0;
  await expect(make(2)).rejects.toThrow("is taken");
  expect(await services.db.firewallRule.count()).toBe(1);
});
