import { afterEach, describe, expect, test } from "vitest";
import type { ServiceSettings } from "../../../server/settings/readConfig.ts";
import { PASSWORD, reportOf, startApp, type TestApp } from "./testApp.ts";

let app: TestApp;
afterEach(() => app.stop());

const start = async (limits: Partial<ServiceSettings>) => {
  app = await startApp({ ...limits, maximumLockout: 0, trustedProxies: ["127.0.0.1"] });
  app.stopClock();
};
const from = (ip: string) => ({ headers: { "x-real-ip": ip } });
const login = (username: string, ip: string, password = "wrong") =>
  app.call("login", { body: { username, password }, ...from(ip) });
const statuses = async (answers: readonly ReturnType<typeof login>[]) =>
  (await Promise.all(answers)).map((answer) => answer.status).sort();

describe("per address", () => {
  test("counts logins of all kinds together, and accepts logins again after a minute", async () => {
    await start({ loginsPerAddress: 4 });
    const ana = await app.user("ana");
    const ip = "203.0.113.7";
    expect((await login("ana", ip, PASSWORD)).status).toBe(200);
    expect((await login("bob", ip)).status).toBe(401);
    expect((await app.call("authUser", { body: { username: "a", password: "b" }, ...from(ip) })).status).toBe(
      401,
    );
    const token = "6f1c2f0a-9f0e-4c55-9b6f-0d8f6f0f1a11";
    expect((await app.call("authMfa", { body: { token, code: "123456" }, ...from(ip) })).status).toBe(401);
    app.pass(20);
    const refused = await login("ana", ip, PASSWORD);
    expect(refused.status).toBe(429);
    expect(refused.body).toEqual({ message: expect.stringContaining("too many requests; try again in") });
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBe(40);
    expect(refused.headers.get("x-account-lockout")).toBeNull();
    const query = { sign: "x" };
    const body = { name: "Ana", email: "a@example.org", username: "ana2", password: "secret-1" };
    expect((await app.call("setup", { query, body, ...from(ip) })).status).toBe(429);

    // The login rate limit of one address affects neither other operations nor logins from other addresses.
    expect((await app.call("getUserInfo", { token: ana.token, ...from(ip) })).status).toBe(200);
    expect((await login("ana", "203.0.113.8", PASSWORD)).status).toBe(200);
    app.pass(seconds);
    expect((await login("ana", ip, PASSWORD)).status).toBe(200);
  });

  test("applies one limit to the network of an IPv6 client", async () => {
    await start({ loginsPerAddress: 1 });
    expect((await login("ana", "2001:db8:1:2::1")).status).toBe(401);
    expect((await login("ana", "2001:db8:1:2:3::9")).status).toBe(429);
    expect((await login("ana", "2001:db8:1:3::1")).status).toBe(401);
  });

  test("counts concurrent requests one by one", async () => {
    await start({ loginsPerAddress: 5 });
    const answers = Array.from({ length: 12 }, (_, n) => login(`user-${n}`, "203.0.113.7"));
    expect(await statuses(answers)).toEqual([...Array(5).fill(401), ...Array(7).fill(429)]);
  });
});

describe("per account", () => {
  test("counts logins from all addresses together, regardless of the name's case", async () => {
    await start({ loginsPerAccount: 3 });
    await app.user("ana");
    for (const [n, name] of ["ana", "ANA", "Ana"].entries()) {
      expect((await login(name, `203.0.113.${n}`)).status).toBe(401);
    }
    const refused = await login("ana", "203.0.113.99", PASSWORD);
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([429, true]);
    expect((await login("bob", "203.0.113.1")).status).toBe(401);
    app.pass(61);
    expect((await login("ana", "203.0.113.99", PASSWORD)).status).toBe(200);
  });

  test("accepts the user from a known network while an attacker exhausts the account's limit", async () => {
    await start({ loginsPerAccount: 3 });
    await app.user("ana");
    const home = "203.0.113.1";
    expect((await login("Ana", home, PASSWORD)).status).toBe(200);
    for (let n = 0; n < 5; n += 1) await login("ana", `198.51.100.${n}`);
    expect((await login("ana", "203.0.113.2", PASSWORD)).status).toBe(429);
    expect((await login("ana", home, PASSWORD)).status).toBe(200);
    // A known network, from which the user has logged in before, has a separate limit.
    for (const status of [401, 401, 429]) expect((await login("ana", home)).status).toBe(status);
    // A network becomes known only with the right password, and for a limited time.
    app.pass(31 * 24 * 60 * 60);
    for (const status of [401, 401, 401, 429]) {
      expect((await login("ana", "198.51.100.1")).status).toBe(status);
    }
    expect((await login("ana", home, PASSWORD)).status).toBe(429);
  });

  test("rejects a body without a name with 400 or 422, not with 429", async () => {
    await start({ loginsPerAccount: 1 });
    for (const body of [{ password: "x" }, { username: "", password: "x" }]) {
      expect((await app.call("login", { body })).status).toBe(400);
    }
    for (const body of ["text", ["username"], { username: 7, password: "x" }]) {
      expect((await app.call("login", { body })).status).toBe(422);
    }
  });
});

test("stores counts in the database for all instances, with digests of names", async () => {
  await start({ loginsPerAddress: 9, loginsPerAccount: 9 });
  await login("ana", "203.0.113.7");
  await login("ana", "203.0.113.7");
  const rows = await app.services.db.rateLimit.findMany({ orderBy: { key: "desc" } });
  expect(rows.map(({ key, count }) => [key, count])).toEqual([
    ["login from 203.0.113.7", 2],
    [expect.stringMatching(/^login as [0-9a-f]{64}$/), 2],
  ]);
  // Increases the count in the database, as another instance does when it receives login requests.
  await app.services.db.rateLimit.updateMany({ data: { count: 9 } });
  expect((await login("bob", "203.0.113.7")).status).toBe(429);
});

test("discards counts that were stored while a clock was ahead, even by another instance or before a restart", async () => {
  await start({ loginsPerAddress: 2, loginsPerAccount: 2, reportsPerAddress: 1 });
  const ana = await app.user("ana", "home");
  const body = reportOf(ana.tenant, "h");
  const report = async () => (await app.call("authDevice", { body, ...from("203.0.113.7") })).status;
  const month = 30 * 24 * 60 * 60;
  app.pass(month);
  for (const status of [401, 401, 429]) expect((await login("ana", "203.0.113.7")).status).toBe(status);
  expect([await report(), await report()]).toEqual([200, 429]);
  // Simulates another instance that has extended the end of the time window in the database, without this instance
  // having read it. After the clock is set back, this end is a month in the future.
  await app.services.db.rateLimit.updateMany({
    data: { endsAt: BigInt(app.services.now().getTime() + 1000) },
  });
  app.pass(-month);
  for (const status of [401, 401, 429]) expect((await login("ana", "203.0.113.7")).status).toBe(status);
  expect(await report()).toBe(200);
});

test("deletes counts of expired windows", async () => {
  await start({ loginsPerAddress: 9, loginsPerAccount: 9 });
  await login("ana", "203.0.113.7");
  app.pass(61);
  await login("bob", "203.0.113.8");
  expect(await app.services.db.rateLimit.count()).toBe(2);
});

test("limits devices' reports separately, without rows in the database", async () => {
  await start({ reportsPerAddress: 2, loginsPerAddress: 1 });
  const ana = await app.user("ana", "home");
  const body = reportOf(ana.tenant, "h");
  const report = async (ip: string) => (await app.call("authDevice", { body, ...from(ip) })).status;
  expect([await report("203.0.113.7"), await report("203.0.113.7"), await report("203.0.113.7")]).toEqual([
    200, 200, 429,
  ]);
  expect(await report("203.0.113.8")).toBe(200);
  expect(await app.services.db.rateLimit.count()).toBe(0);
  app.pass(60);
  expect(await report("203.0.113.7")).toBe(200);
});

test("a limit of 0 disables the limit", { tags: ["long"] }, async () => {
  await start({});
  const answers = Array.from({ length: 12 }, () => login("missing", "203.0.113.7"));
  expect(new Set(await statuses(answers))).toEqual(new Set([401]));
  expect(await app.services.db.rateLimit.count()).toBe(0);
});
