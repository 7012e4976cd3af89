import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { beginSession } from "../../../server/features/sessions/entry.ts";
import { LiveLogins } from "../../../server/gateway/logins/LiveLogins.ts";
import type { Services } from "../../../server/services.ts";
import { withSharedApp } from "../http/lab.ts";
import { enroll, type TestUser } from "../http/testApp.ts";

const app = withSharedApp();
let ana: TestUser;
let deviceUid: string;
beforeAll(async () => {
  ana = await app.user("ana", "lab");
  deviceUid = (await enroll(app, ana.tenant, "00:00:00:00:00:01", { hostname: "edge-1" })).uid;
  await ana.call("acceptDevice", { params: { uid: deviceUid } });
});

/**
 * Starts a login by password that stays open. Returns the uid and a mock function, which receives the reason when the
 * login ends.
 */
async function liveLogin(settings: Partial<Services["settings"]> = {}) {
  const ended = vi.fn();
  const services = { ...app.services, settings: { ...app.services.settings, ...settings } };
  const live = new LiveLogins(services, () => pino({ level: "silent" }), ended);
  onTestFinished(() => live.stop());
  const uid = randomBytes(32).toString("hex");
  const login = { username: "root", ipAddress: "198.51.100.1", type: "none", term: "none" };
  const facts = { deviceUid, tenantId: ana.tenant, username: "root", address: login.ipAddress };
  await live.begin(uid, { ...facts, key: undefined, userId: undefined }, () =>
    beginSession(services, { uid, deviceUid, ...login, viaGateway: true }),
  );
  return { uid, ended };
}

const denyAll = { action: "deny", active: true, priority: 1, source_ip: ".*", username: "root" };

test("ends a login at the namespace's maximum session duration", async () => {
  const { uid, ended } = await liveLogin();
  const edit = (minutes: number) =>
    app.call("editNamespace", {
      ...{ token: ana.token, params: { tenant: ana.tenant } },
      body: { settings: { session_max_minutes: minutes } },
    });
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
