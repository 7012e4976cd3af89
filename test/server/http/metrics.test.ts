import { expect, test } from "vitest";
import { sealMfaSecret } from "../../../server/features/users/mfa/mfaChallenge.ts";
import { withSharedApp } from "./appOfTest.ts";
import { enroll, PASSWORD } from "./testApp.ts";

const app = withSharedApp();

/** Returns the value of a series; 0 if the series has not been counted yet. */
async function counted(name: string, labels: Record<string, string> = {}): Promise<number> {
  const metric = await app.services.metrics.registry.getSingleMetric(name)?.get();
  const series = metric?.values.find((value) =>
    Object.entries(labels).every(([label, text]) => String(value.labels[label]) === text),
  );
  return series?.value ?? 0;
}

test("counts responses by operation and status, and measures their duration", async () => {
  await app.call("getInfo");
  await app.send("GET", "/api/info");
  await app.call("getDevices");
  const requests = (operation: string, status: string) =>
    counted("gatehouse_requests_total", { operation, status });
  await expect.poll(() => requests("getInfo", "200")).toBe(2);
  await expect.poll(() => requests("getDevices", "401")).toBe(1);
  const text = await app.services.metrics.registry.metrics();
  expect(text).toContain('gatehouse_request_duration_seconds_count{operation="getInfo"} 2');
});

test("never uses a caller's text as a label", async () => {
  await app.send("GET", "/probe-1?x=probe-2");
  await app.send("DELETE", "/api/devices/probe-3");
  await app.send("OPTIONS", "/api/probe-4");
  await app.call("login", { body: { username: "probe-5", password: "probe-6" } });
  await expect
    .poll(() => counted("gatehouse_requests_total", { operation: "none", status: "404" }))
    .toBeGreaterThanOrEqual(2);
  await expect.poll(() => counted("gatehouse_requests_total", { operation: "login", status: "401" })).toBe(1);
  expect(await app.services.metrics.registry.metrics()).not.toContain("probe");
});

test("counts logins by result, and lockouts when they begin", async () => {
  const ana = await app.user("ana");
  const login = (password: string) => app.call("login", { body: { username: "ana", password } });
  const logins = (result: string) => counted("gatehouse_logins_total", { step: "password", result });
  const wrongBefore = await logins("wrong");
  await login(PASSWORD);
  for (let n = 0; n < 5; n += 1) await login("wrong");
  expect(await logins("success")).toBe(1);
  expect((await logins("wrong")) - wrongBefore).toBe(2);
  expect(await logins("locked")).toBe(3);
  expect(await counted("gatehouse_lockouts_total")).toBe(1);

  app.pass(3600);
  const mfaSecret = sealMfaSecret(app.services, ana.id, "GEZDGNBVGY3TQOJQ");
  await app.services.db.user.update({ where: { id: ana.id }, data: { mfaSecret } });
  const token = (await login(PASSWORD)).headers.get("x-mfa-token");
  expect(await logins("mfa_needed")).toBe(1);
  await app.call("authMfa", { body: { token, code: "000000" } });
  expect(await counted("gatehouse_logins_total", { step: "mfa", result: "wrong" })).toBe(1);
});

test("counts devices' reports", async () => {
  const bob = await app.user("bob", "home");
  await enroll(app, bob.tenant, "00:00:00:00:00:01");
  await enroll(app, bob.tenant, "00:00:00:00:00:01");
  expect(await counted("gatehouse_device_heartbeats_total")).toBe(2);
});
