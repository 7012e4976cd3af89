import { beforeEach, describe, expect, test } from "vitest";
import { removeExpiredObjects } from "../../../server/features/expiredObjects.ts";
import { expectError } from "../http/answers.ts";
import { testApp, withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { acceptedDevice, linkMailedTo, trailOf } from "../http/fixtures.ts";
import {
  type CallOptions,
  DENY_RULE,
  encodeFilter,
  PASSWORD,
  PUBLIC_KEY,
  property,
  type TestApp,
  type TestUser,
  valuesOf,
} from "../http/testApp.ts";

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
const DAY = 24 * 3600;
const YEAR = 365 * DAY;

/** Returns the time after the given number of seconds, in the API's format. */
const timeAfter = (seconds: number) => new Date(app.services.now().getTime() + seconds * 1000).toISOString();
/** Returns the same time with the offset of another time zone. */
const withOffset = (time: string) =>
  new Date(Date.parse(time) + 2 * 3_600_000).toISOString().replace("Z", "+02:00");

const invite = (email: string, more: object = {}, options: CallOptions = {}) =>
  ana.call("inviteMember", { ...options, body: { email, role: "operator", ...more } });
const updateMember = (uid: string, body: object) => ana.call("updateMember", { params: { uid }, body });
const memberOf = async ({ id }: TestUser) => {
  const { body } = await ana.call("getNamespace");
  return body.members.find((member: { id: string }) => member.id === id);
};
const createKey = (more: object = {}, options: CallOptions = {}) =>
  ana.call("createPublicKey", { ...options, body: { ...PUBLIC_KEY, ...more } });
const lastEntry = async () => (await trailOf(ana))[0];

/** A kind of object that ends, with its requests. */
interface Kind {
  readonly field: "expires_at" | "access_expires_at";
  /** Creates the object. */
  create(more: object, options?: CallOptions): Promise<{ status: number; body: Record<string, unknown> }>;
  /** Updates the object with the given field, and the required fields. */
  update(more: object): Promise<{ status: number; body: Record<string, unknown> }>;
  /** Returns the object from a list. */
  read(): Promise<Record<string, unknown>>;
}

let bob: TestUser;
beforeEach(async () => {
  bob = await app.user("bob", "own");
});

let rule = "";
const KINDS: Readonly<Record<string, Kind>> = {
  "public key": {
    field: "expires_at",
    create: createKey,
    update: async (more) => {
      const [{ fingerprint }] = (await ana.call("getPublicKeys")).body;
      const { data: _, ...settings } = PUBLIC_KEY;
      return ana.call("updatePublicKey", { params: { fingerprint }, body: { ...settings, ...more } });
    },
    read: async () => (await ana.call("getPublicKeys")).body[0],
  },
  "firewall rule": {
    field: "expires_at",
    create: async (more, options) => {
      const answer = await ana.call("createFirewallRule", { ...options, body: { ...DENY_RULE, ...more } });
      rule = answer.body.id;
      return answer;
    },
    update: (more) =>
      ana.call("updateFirewallRule", { params: { id: rule }, body: { ...DENY_RULE, ...more } }),
    read: async () => (await ana.call("getFirewallRule", { params: { id: rule } })).body,
  },
  membership: {
    field: "access_expires_at",
    create: (more, options) => invite(bob.email, more, options),
    update: (more) => updateMember(bob.id, more),
    read: () => memberOf(bob),
  },
};

describe.each(Object.entries(KINDS))("the end of a %s", (_, { field, create, update, read }) => {
  test("has UTC in responses, and is in the audit trail", async () => {
    const end = timeAfter(DAY);
    expect((await create({ [field]: withOffset(end) })).status).toBe(200);
    expect(await read()).toMatchObject({ [field]: end });
    expect(await lastEntry()).toMatchObject({ before: null, after: { [field]: end } });
  });

  test("is absent if it is not set, and changes the revision", async () => {
    await create({});
    const without = await read();
    expect(without).not.toHaveProperty(field);
    expect((await lastEntry()).after).not.toHaveProperty(field);
    await update({ [field]: timeAfter(DAY) });
    expect((await read()).revision).not.toBe(without.revision);
    await update({ [field]: null });
    expect(await read()).toEqual(without);
  });

  test("must be in the future in a create, and have an offset", async () => {
    for (const [time, message] of [
      [timeAfter(0), `${field} must be in the future`],
      [timeAfter(-DAY), `${field} must be in the future`],
      ["9999-12-31T23:59:59-01:00", `${field} must be a time from 1970 to 9999`],
    ] as const) {
      expectError(await create({ [field]: time }), 400, message, { label: time });
    }
    for (const time of ["2199-01-01T00:00:00", "2199-01-01", "tomorrow"]) {
      expectError(await create({ [field]: time }), 400, new RegExp(`^${field} must be`), { label: time });
    }
  });

  test("stays in an update without it, and can be set to a past time", async () => {
    const end = timeAfter(DAY);
    await create({ [field]: end });
    expect((await update({})).status).toBe(200);
    expect(await read()).toMatchObject({ [field]: end });
    const past = timeAfter(-DAY);
    expect((await update({ [field]: past })).status).toBe(200);
    expect(await read()).toMatchObject({ [field]: past });
    expect((await update({})).status).toBe(200);
    expect(await read()).toMatchObject({ [field]: past });
    expect((await update({ [field]: "0000-01-01T00:00:00Z" })).status).toBe(400);
  });

  test("allows a repeated create after it has passed", async () => {
    const options = { headers: { "idempotency-key": "once" } };
    const end = timeAfter(60);
    await create({ [field]: end }, options);
    const created = await read();
    app.pass(60);
    expect((await create({ [field]: end }, options)).status).toBe(200);
    expect(await read()).toEqual(created);
  });
});

describe("a key with an owner", () => {
  const body = { tenant_id: "", name: "edge-1", tags: [] };
  const admits = async () => {
    const [{ fingerprint }] = (await ana.call("getPublicKeys")).body;
    const params = { fingerprint, username: "root" };
    const device = { ...body, tenant_id: ana.tenant };
    const { body: admitted } = await internal.call("evaluatePublicKey", { params, body: device });
    const { status } = await internal.call("lookupPublicKey", {
      params: { fingerprint, tenant: ana.tenant },
    });
    expect(status).toBe(admitted ? 200 : 404);
    return admitted;
  };
  test("needs a member as the owner", async () => {
    const message = "owner: the user is not a member of the namespace";
    expect(await createKey({ owner: bob.id })).toMatchObject({ status: 400, body: { message } });
    await invite(bob.email);
    expect((await createKey({ owner: bob.id })).body.owner).toBe(bob.id);
    const stranger = await app.user("eve");
    const { update } = KINDS["public key"] as Kind;
    expect(await update({ owner: stranger.id })).toMatchObject({ status: 400, body: { message } });
    expect((await update({})).body.owner).toBe(bob.id);
    expect((await update({ owner: null })).body).not.toHaveProperty("owner");
  });

  test("admits logins only while the owner is a member, and keeps its owner", async () => {
    await invite(bob.email);
    await createKey({ owner: bob.id });
    expect(await admits()).toBe(true);
    await updateMember(bob.id, { access_expires_at: timeAfter(60) });
    expect(await admits()).toBe(true);
    app.pass(60);
    expect(await admits()).toBe(false);
    const { update } = KINDS["public key"] as Kind;
    expect((await update({ name: "renamed", owner: bob.id })).body.name).toBe("renamed");
    await updateMember(bob.id, { access_expires_at: null });
    expect(await admits()).toBe(true);
    await ana.call("removeMember", { params: { uid: bob.id } });
    expect(await admits()).toBe(false);
    expect((await ana.call("getPublicKeys")).body).toMatchObject([{ owner: bob.id }]);
    expect((await update({ name: "kept" })).status).toBe(200);
  });

  test("admits no login after its own end", async () => {
    await createKey({ owner: ana.id, expires_at: timeAfter(60) });
    expect(await admits()).toBe(true);
    app.pass(60);
    expect(await admits()).toBe(false);
  });

  test("is found by its owner and its end", async () => {
    const end = timeAfter(60);
    await createKey({ owner: ana.id, expires_at: end });
    const found = async (name: string, value: string) => {
      const filter = encodeFilter([property(name, "eq", value)]);
      return valuesOf((await ana.call("getPublicKeys", { query: { filter } })).body, "name");
    };
    expect(await found("owner", ana.id)).toEqual(["laptop"]);
    expect(await found("owner", bob.id)).toEqual([]);
    expect(await found("expires_at", end)).toEqual(["laptop"]);
    expect(await found("expires_at", timeAfter(61))).toEqual([]);
  });
});

test("an expired firewall rule decides no login", async () => {
  await acceptedDevice(app, ana, "edge-1");
  await ana.call("createFirewallRule", { body: { ...DENY_RULE, expires_at: timeAfter(60) } });
  const query = { domain: "lab", name: "edge-1", username: "root", ip_address: "192.0.2.1" };
  const status = async () => (await internal.call("evaluateFirewall", { query })).status;
  expect(await status()).toBe(403);
  app.pass(60);
  expect(await status()).toBe(200);
});

describe("a member whose membership has ended", () => {
  let inLab: TestUser;
  beforeEach(async () => {
    await invite(bob.email, { access_expires_at: timeAfter(DAY) });
    inLab = { ...bob, tenant: ana.tenant, token: await app.tokenOf({ ...bob, tenant: ana.tenant }) };
  });
  const namespaces = async () => valuesOf((await bob.call("getNamespaces")).body, "name");

  test("has no access to the API", async () => {
    expect((await bob.call("getNamespace", { params: { tenant: ana.tenant } })).status).toBe(200);
    expect((await app.call("getDevices", { token: inLab.token })).status).toBe(200);
    expect(await namespaces()).toEqual(["lab", "own"]);
    const switched = await bob.call("getNamespaceToken", { params: { tenant: ana.tenant } });
    expect(switched.status).toBe(200);
    app.pass(DAY);
    expect((await bob.call("getNamespace", { params: { tenant: ana.tenant } })).status).toBe(403);
    expect((await app.call("getDevices", { token: inLab.token })).status).toBe(401);
    expect(await namespaces()).toEqual(["own"]);
    expect((await bob.call("getNamespaceToken", { params: { tenant: ana.tenant } })).status).toBe(404);
    const body = { username: "bob", password: PASSWORD };
    expect((await app.call("login", { body })).body.tenant).toBe(bob.tenant);
    const leaving = await bob.call("leaveNamespace", { params: { tenant: ana.tenant } });
    expect(leaving.status).toBe(403);
  });

  test("stays in the list of members, and has access again with a later end", async () => {
    app.pass(DAY);
    const ended = await memberOf(bob);
    expect(Date.parse(ended.access_expires_at)).toBeLessThanOrEqual(app.services.now().getTime());
    await updateMember(bob.id, { access_expires_at: timeAfter(DAY) });
    expect((await app.call("getDevices", { token: inLab.token })).status).toBe(200);
  });

  test("can be invited again, without an end", async () => {
    expect((await invite(bob.email)).status).toBe(409);
    app.pass(DAY);
    expect((await invite(bob.email, { role: "observer" })).status).toBe(200);
    const member = await memberOf(bob);
    expect(member).toMatchObject({ role: "observer", status: "accepted" });
    expect(member).not.toHaveProperty("access_expires_at");
    expect((await app.call("getDevices", { token: inLab.token })).status).toBe(200);
  });

  test("has no access again after the clock has moved back", async () => {
    app.pass(DAY);
    expect((await bob.call("getNamespace", { params: { tenant: ana.tenant } })).status).toBe(403);
    app.pass(-DAY);
    expect((await bob.call("getNamespace", { params: { tenant: ana.tenant } })).status).toBe(403);
    expect(await namespaces()).toEqual(["own"]);
  });
});

test("the owner's membership has no end", async () => {
  expect((await updateMember(ana.id, { access_expires_at: timeAfter(DAY) })).status).toBe(403);
  expect((await updateMember(ana.id, { access_expires_at: null })).status).toBe(403);
  const owner = { role: "owner", access_expires_at: timeAfter(DAY) };
  expect((await invite(bob.email, owner)).status).toBe(403);
});

describe("an invitation on a cloud instance", () => {
  let cloud: TestApp;
  let owner: TestUser;
  let guest: TestUser;
  beforeEach(async () => {
    cloud = await testApp({ edition: "cloud" });
    owner = await cloud.user("owner", "lab");
    guest = await cloud.user("guest");
    const body = { email: guest.email, role: "observer", access_expires_at: timeAfter(DAY) };
    expect((await owner.call("inviteMember", { body })).status).toBe(200);
  });
  const accept = async (sig: string) => {
    const params = { tenant: owner.tenant };
    return (await guest.call("acceptInvite", { params, body: { sig } })).status;
  };
  const sigOf = (link: string | URL) => new URL(link).searchParams.get("sig") ?? "";
  const mailed = async () => sigOf(await linkMailedTo(cloud, guest.email));

  test("keeps the end of the membership when the user accepts", async () => {
    expect(await accept(await mailed())).toBe(200);
    const { members } = (await owner.call("getNamespace")).body;
    expect(members[1]).toMatchObject({ status: "accepted", access_expires_at: expect.any(String) });
    cloud.pass(DAY);
    expect((await guest.call("getNamespaces")).body).toEqual([]);
  });

  test("cannot be accepted after the end of the membership, and can be sent again", async () => {
    const sig = await mailed();
    cloud.pass(DAY);
    expect(await accept(sig)).toBe(404);
    const body = { email: guest.email, role: "observer" };
    expect((await owner.call("inviteMember", { body })).status).toBe(200);
    expect(await accept(await mailed())).toBe(200);
  });

  test("as a link, has the end of the request", async () => {
    const offer = (end: string | null) =>
      owner.call("generateInvitationLink", {
        body: { email: guest.email, role: "observer", access_expires_at: end },
      });
    expectError(await offer(timeAfter(-60)), 400, /access_expires_at/);
    const { link } = (await offer(timeAfter(2 * DAY))).body;
    expect(await accept(sigOf(link))).toBe(200);
    cloud.pass(DAY);
    expect((await cloud.call("getNamespaces", { token: await cloud.tokenOf(guest) })).body).toHaveLength(1);
    cloud.pass(DAY);
    expect((await cloud.call("getNamespaces", { token: await cloud.tokenOf(guest) })).body).toEqual([]);
  });

  test("keeps the end of the membership in a new link", async () => {
    const body = { email: guest.email, role: "observer" };
    const { link } = (await owner.call("generateInvitationLink", { body })).body;
    expect(await accept(sigOf(link))).toBe(200);
    cloud.pass(DAY);
    expect((await guest.call("getNamespaces")).body).toEqual([]);
  });
});

describe("expired objects", () => {
  const declared = { headers: { "gatehouse-declared-by": "fleet/prod/object" } };
  const remaining = async () => {
    const token = await app.tokenOf(ana);
    const call = async (id: "getPublicKeys" | "getFirewallRules") => (await app.call(id, { token })).body;
    const namespace = await app.call("getNamespace", { token, params: { tenant: ana.tenant } });
    const { members } = namespace.body;
    return [(await call("getPublicKeys")).length, (await call("getFirewallRules")).length, members.length];
  };
  const createAll = async (options: CallOptions = {}) => {
    for (const { field, create } of Object.values(KINDS))
      expect((await create({ [field]: timeAfter(60) }, options)).status).toBe(200);
  };

  test("are deleted after the retention, with audit entries", async () => {
    await createAll();
    app.pass(60 + 29 * DAY);
    await removeExpiredObjects(app.services);
    expect(await remaining()).toEqual([1, 1, 2]);
    app.pass(DAY);
    await removeExpiredObjects(app.services);
    expect(await remaining()).toEqual([0, 0, 1]);
    const token = await app.tokenOf(ana);
    const { body } = await app.call("getAuditTrail", { token, params: { tenant: ana.tenant } });
    expect(body.slice(0, 3)).toMatchObject(
      ["member", "firewallRule", "publicKey"].map((kind) => ({
        actor: { kind: "operator" },
        operation: "removeExpiredObject",
        object: { kind },
        after: null,
      })),
    );
  });

  test("stay if a program declares them, if they have no end, and with the retention 0", async () => {
    await createAll(declared);
    await createKey({ data: Buffer.from(ANOTHER_KEY).toString("base64") });
    app.pass(YEAR);
    await removeExpiredObjects(app.services);
    expect(await remaining()).toEqual([2, 1, 2]);
    const settings = { ...app.services.settings, expiredObjectRetention: 0 };
    await app.services.db.publicKey.updateMany({ data: { declaredBy: null } });
    await removeExpiredObjects({ ...app.services, settings });
    expect(await remaining()).toEqual([2, 1, 2]);
    await removeExpiredObjects(app.services);
    expect(await remaining()).toEqual([1, 1, 2]);
  });
});

const ANOTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
