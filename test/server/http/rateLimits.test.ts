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

describe("of one address", () => {
  test("logins of all kinds count together, and go on when the minute is over", async () => {
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

    // Neither other operations nor other addresses are touched.
    expect((await app.call("getUserInfo", { token: ana.token, ...from(ip) })).status).toBe(200);
    expect((await login("ana", "203.0.113.8", PASSWORD)).status).toBe(200);
    app.pass(seconds);
    expect((await login("ana", ip, PASSWORD)).status).toBe(200);
  });

  test("an IPv6 client has one limit for its network", async () => {
    await start({ loginsPerAddress: 1 });
    expect((await login("ana", "2001:db8:1:2::1")).status).toBe(401);
    expect((await login("ana", "2001:db8:1:2:3::9")).status).toBe(429);
    expect((await login("ana", "2001:db8:1:3::1")).status).toBe(401);
  });

  test("requests side by side are counted one by one", async () => {
    await start({ loginsPerAddress: 5 });
    const answers = Array.from({ length: 12 }, (_, n) => login(`user-${n}`, "203.0.113.7"));
    expect(await statuses(answers)).toEqual([...Array(5).fill(401), ...Array(7).fill(429)]);
  });
});

describe("for one account", () => {
  test("logins from everywhere count together, whatever case the name is in", async () => {
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

  test("strangers do not keep out who logs in from where the password was right before", async () => {
    await start({ loginsPerAccount: 3 });
    await app.user("ana");
    const home = "203.0.113.1";
    expect((await login("Ana", home, PASSWORD)).status).toBe(200);
    for (let n = 0; n < 5; n += 1) await login("ana", `198.51.100.${n}`);
    expect((await login("ana", "203.0.113.2", PASSWORD)).status).toBe(429);
    expect((await login("ana", home, PASSWORD)).status).toBe(200);
    // There, too, nobody guesses without a limit.
    for (const status of [401, 401, 429]) expect((await login("ana", home)).status).toBe(status);
    // A wrong password makes no network known, and a right one not for ever.
    app.pass(31 * 24 * 60 * 60);
    for (const status of [401, 401, 401, 429]) {
      expect((await login("ana", "198.51.100.1")).status).toBe(status);
    }
    expect((await login("ana", home, PASSWORD)).status).toBe(429);
  });

  test("a body without a name is refused as before", async () => {
    await start({ loginsPerAccount: 1 });
    for (const body of [{ password: "x" }, { username: "", password: "x" }]) {
      expect((await app.call("login", { body })).status).toBe(400);
    }
    for (const body of ["text", ["username"], { username: 7, password: "x" }]) {
      expect((await app.call("login", { body })).status).toBe(422);
    }
  });
});

test("the counts are the database's: another instance knows them, names stand there as digests", async () => {
  await start({ loginsPerAddress: 9, loginsPerAccount: 9 });
  await login("ana", "203.0.113.7");
  await login("ana", "203.0.113.7");
  const rows = await app.services.db.rateLimit.findMany({ orderBy: { key: "desc" } });
  expect(rows.map(({ key, count }) => [key, count])).toEqual([
    ["login from 203.0.113.7", 2],
    [expect.stringMatching(/^login as [0-9a-f]{64}$/), 2],
  ]);
  // Another instance's requests, as this one sees them.
  await app.services.db.rateLimit.updateMany({ data: { count: 9 } });
  expect((await login("bob", "203.0.113.7")).status).toBe(429);
});

test("counts of a clock that was ahead are over, also on another instance and after a start", async () => {
  await start({ loginsPerAddress: 2, loginsPerAccount: 2, reportsPerAddress: 1 });
  const ana = await app.user("ana", "home");
  const body = reportOf(ana.tenant, "h");
  const report = async () => (await app.call("authDevice", { body, ...from("203.0.113.7") })).status;
  const month = 30 * 24 * 60 * 60;
  app.pass(month);
  for (const status of [401, 401, 429]) expect((await login("ana", "203.0.113.7")).status).toBe(status);
  expect([await report(), await report()]).toEqual([200, 429]);
  // What is over a month away in the database, this instance has not seen.
  await app.services.db.rateLimit.updateMany({
    data: { endsAt: BigInt(app.services.now().getTime() + 1000) },
  });
  app.pass(-month);
  for (const status of [401, 401, 429]) expect((await login("ana", "203.0.113.7")).status).toBe(status);
  expect(await report()).toBe(200);
});

test("counts of windows that are over are forgotten", async () => {
  await start({ loginsPerAddress: 9, loginsPerAccount: 9 });
  await login("ana", "203.0.113.7");
  app.pass(61);
  await login("bob", "203.0.113.8");
  expect(await app.services.db.rateLimit.count()).toBe(2);
});

test("devices' reports have a limit of their own, which costs the database nothing", async () => {
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

test("a limit of 0 is none", async () => {
  await start({});
  const answers = Array.from({ length: 12 }, () => login("nobody", "203.0.113.7"));
  expect(new Set(await statuses(answers))).toEqual(new Set([401]));
  expect(await app.services.db.rateLimit.count()).toBe(0);
});
