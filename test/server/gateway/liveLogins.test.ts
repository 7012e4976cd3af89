import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { beginSession } from "../../../server/features/sessions/entry.ts";
import type { LoginFacts } from "../../../server/gateway/logins/checkLogins.ts";
import { LiveLogins } from "../../../server/gateway/logins/LiveLogins.ts";
import type { LoginEnds } from "../../../server/gateway/protocol.ts";
import type { Services } from "../../../server/services.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { acceptedDevice } from "../http/fixtures.ts";
import { DENY_RULE, ED25519, PUBLIC_KEY, type TestUser } from "../http/testApp.ts";

const app = withSharedApp();
let ana: TestUser;
let deviceUid: string;
beforeAll(async () => {
  ana = await app.user("ana", "lab");
  deviceUid = (await acceptedDevice(app, ana, "edge-1")).uid;
});

/** Returns open logins, and a mock function, which receives the uid and the reason when a login ends. */
function openLogins(settings: Partial<Services["settings"]> = {}) {
  const ended = vi.fn();
  const database = { isDown: false };
  // Each use of the client fails like a connection to a database that does not run.
  const db = new Proxy(app.services.db, {
    get: (target, name) => {
      if (database.isDown) throw new Error("Connection terminated unexpectedly");
      return Reflect.get(target, name, target);
    },
  });
  const services = { ...app.services, db, settings: { ...app.services.settings, ...settings } };
  const live = new LiveLogins(services, () => pino({ level: "silent" }), ended);
  onTestFinished(() => live.stop());
  return { database, ended, live, services };
}

/** Starts a login that stays open, by default with a password. Returns the uid of its session. */
async function begin(
  { live, services }: ReturnType<typeof openLogins>,
  by: Partial<Pick<LoginFacts, "key" | "userId">> = {},
  ends: Partial<LoginEnds> = {},
): Promise<string> {
  const uid = randomBytes(32).toString("hex");
  const login = { username: "root", ipAddress: "198.51.100.1", type: "none", term: "none" };
  const facts = { deviceUid, tenantId: ana.tenant, username: "root", address: login.ipAddress };
  const known = { access: Infinity, rule: Infinity, maxMinutes: 0, ...ends };
  await live.begin(uid, { ...facts, key: undefined, userId: undefined, ...by }, known, () =>
    beginSession(services, { uid, deviceUid, ...login, viaGateway: true }),
  );
  return uid;
}

/** Starts a login that stays open, with other open logins than the logins of other calls. */
async function liveLogin(settings: Partial<Services["settings"]> = {}) {
  const logins = openLogins(settings);
  return { uid: await begin(logins), ended: logins.ended };
}

const denyAll = { action: "deny", active: true, priority: 1, source_ip: ".*", username: "root" };

test("ends a login at the namespace's maximum session duration", async () => {
  const { uid, ended } = await liveLogin();
  const edit = (minutes: number) =>
    ana.call("editNamespace", { body: { settings: { session_max_minutes: minutes } } });
  app.pass(3600);
  await edit(90);
  // Waits until the service has ended a second login. By then, it has also checked the first login again.
  const { uid: other, ended: otherEnded } = await liveLogin();
  await ana.call("closeSession", { params: { uid: other }, body: { device: deviceUid } });
  await expect.poll(() => otherEnded.mock.calls[0]).toEqual([other, "the session was closed"]);
  expect(ended).not.toHaveBeenCalled();
  await edit(60);
  await expect.poll(() => ended.mock.calls[0]).toEqual([uid, "the session has reached its time limit"]);
  await edit(0);
});

test("keeps a login that the policy no longer allows if `endRefusedSessions` is false", async () => {
  const kept = await liveLogin({ endRefusedSessions: false });
  const { uid, ended } = await liveLogin();
  const body = { ...denyAll, filter: { hostname: "edge-1" } };
  const { id } = (await ana.call("createFirewallRule", { body })).body;
  await expect.poll(() => ended.mock.calls[0]).toEqual([uid, "access was revoked"]);
  expect(kept.ended).not.toHaveBeenCalled();
  await ana.call("deleteFirewallRule", { params: { id } });
});

/** Waits until the policy has been checked for all logins that are open when the function is called. */
async function untilChecked(logins: ReturnType<typeof openLogins>): Promise<void> {
  // A closed session ends at the start of a check. So when the second one ends, the check that ended the first is over.
  for (let check = 0; check < 2; check += 1) {
    const uid = await begin(logins);
    await ana.call("closeSession", { params: { uid }, body: { device: deviceUid } });
    await expect.poll(() => logins.ended.mock.calls).toContainEqual([uid, "the session was closed"]);
    await logins.live.end(uid);
  }
}

describe("ends", () => {
  const key = Buffer.from(ED25519.split(" ")[1] ?? "", "base64");
  const inAMinute = () => new Date(app.services.now().getTime() + 60_000).toISOString();
  const createKey = async (more: object) => {
    const { status, body } = await ana.call("createPublicKey", { body: { ...PUBLIC_KEY, ...more } });
    expect(status).toBe(200);
    onTestFinished(async () => {
      const params = { fingerprint: body.fingerprint };
      await app.call("deletePublicKey", { token: await app.tokenOf(ana), params });
    });
  };
  let guests = 0;
  const invite = async () => {
    guests += 1;
    const guest = await app.user(`guest-${guests}`);
    const body = { email: guest.email, role: "observer", access_expires_at: inAMinute() };
    const params = { tenant: ana.tenant };
    expect((await ana.call("inviteMember", { params, body })).status).toBe(200);
    return guest.id;
  };
  const createRule = async (more: object) => {
    const { status, body } = await ana.call("createFirewallRule", { body: { ...DENY_RULE, ...more } });
    expect(status).toBe(200);
    onTestFinished(async () => {
      await ana.call("deleteFirewallRule", { params: { id: body.id } });
    });
  };

  /** Starts a login whose access ends in a minute. Returns the arguments of the call that ends the login. */
  async function endingLogin(logins: ReturnType<typeof openLogins>, by: Parameters<typeof begin>[1]) {
    const revoked = [await begin(logins, by), "access was revoked"];
    await untilChecked(logins);
    expect(logins.ended.mock.calls).not.toContainEqual(revoked);
    return revoked;
  }

  const ENDS: Readonly<Record<string, () => Promise<Parameters<typeof begin>[1]>>> = {
    "its key": async () => {
      await createKey({ expires_at: inAMinute() });
      return { key };
    },
    "the membership of the key's owner": async () => {
      await createKey({ owner: await invite() });
      return { key };
    },
    "the membership of the user of a web terminal": async () => ({ userId: await invite() }),
    "the rule that allows it": async () => {
      await createRule({});
      await createRule({ action: "allow", priority: 2, expires_at: inAMinute() });
      return {};
    },
  };

  test.each(Object.entries(ENDS))(
    "a login at the end of %s, without a change of an object",
    async (_, prepare) => {
      const logins = openLogins();
      const revoked = await endingLogin(logins, await prepare());
      app.pass(60);
      await expect.poll(() => logins.ended.mock.calls).toContainEqual(revoked);
    },
  );

  test("no login at the end of a denying rule", async () => {
    await createRule({ expires_at: inAMinute(), username: "another" });
    const logins = openLogins();
    const uid = await begin(logins);
    await untilChecked(logins);
    app.pass(60);
    await untilChecked(logins);
    expect(logins.ended.mock.calls.filter(([ended]) => ended === uid)).toEqual([]);
  });

  describe("without the database", () => {
    test.each(Object.entries(ENDS))("a login at the end of %s", async (_, prepare) => {
      const logins = openLogins();
      const revoked = await endingLogin(logins, await prepare());
      logins.database.isDown = true;
      app.pass(62);
      await expect.poll(() => logins.ended.mock.calls).toContainEqual(revoked);
    });

    test("no login at the end of a denying rule, by the rules that were read last", async () => {
      await createRule({ expires_at: inAMinute(), username: "another" });
      const logins = openLogins();
      const uid = await begin(logins);
      await untilChecked(logins);
      const decisions = vi.spyOn(app.services.decisions, "run");
      onTestFinished(() => decisions.mockRestore());
      logins.database.isDown = true;
      app.pass(62);
      await expect.poll(() => decisions.mock.results.length).toBeGreaterThan(0);
      await Promise.all(decisions.mock.results.map(({ value }) => value));
      expect(logins.ended.mock.calls.filter(([ended]) => ended === uid)).toEqual([]);
    });

    const KNOWN: Readonly<Record<string, readonly [reason: string, ends: () => Partial<LoginEnds>]>> = {
      "the access": ["access was revoked", () => ({ access: Date.parse(inAMinute()) })],
      "a rule": ["access was revoked", () => ({ rule: Date.parse(inAMinute()) })],
      "the time limit": ["the session has reached its time limit", () => ({ maxMinutes: 1 })],
    };

    test.each(Object.entries(KNOWN))(
      "a login at the end of %s that was known when it began",
      async (_, [reason, ends]) => {
        const logins = openLogins();
        const uid = await begin(logins, {}, ends());
        // No check has read anything for this login.
        logins.database.isDown = true;
        app.pass(62);
        await expect.poll(() => logins.ended.mock.calls).toContainEqual([uid, reason]);
      },
    );
  });
});

test("closes a session at the time of its end, although the database stores the end later", async () => {
  const logins = openLogins();
  const uid = await begin(logins);
  const at = new Date(app.services.now().getTime() - 1_000);
  await logins.live.end(uid, at);
  const row = await app.services.db.session.findUnique({ where: { uid } });
  expect(row?.closedAt).toEqual(at);
});

test("marks the sessions of a gateway process that has ended", async () => {
  const logins = openLogins();
  const [one, other] = [await begin(logins), await begin(logins)];
  await logins.live.end(one);
  await logins.live.endAll();
  const events = (uid: string) => ana.call("getSession", { params: { uid } });
  expect((await events(one)).body.events.items).toEqual([]);
  expect((await events(other)).body.events.items).toMatchObject([{ type: "recording-gap", seat: 0 }]);
  const row = await app.services.db.session.findUnique({ where: { uid: other } });
  expect(row).toMatchObject({ events: 1, closedAt: expect.any(Date) });
});
