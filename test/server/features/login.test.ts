import { describe, expect, test } from "vitest";
import { createUser } from "../../../server/features/users/account/createUser.ts";
import { penaltyOf } from "../../../server/features/users/lockout.ts";
import { testApp, withAppAndUser } from "../http/appOfTest.ts";
import { PASSWORD } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();

const login = (username: string, password: string, headers = {}) =>
  app.call("login", { body: { username, password }, headers });
const wrong = (username = "ana", headers = {}) => login(username, "wrong", headers);
const now = () => app.services.now().getTime() / 1000;

test("returns a session, by name or e-mail in any case, on both paths", async () => {
  for (const username of ["ana", "ANA", "ana@example.org", "Ana@Example.Org"]) {
    const { status, body, headers } = await login(username, PASSWORD);
    expect(status).toBe(200);
    expect(headers.get("x-account-lockout")).toBe("0");
    expect(body).toMatchObject({
      id: ana.id,
      origin: "local",
      auth_methods: ["local"],
      user: "ana",
      name: "ana",
      email: "ana@example.org",
      recovery_email: "",
      tenant: ana.tenant,
      role: "owner",
      mfa: false,
      max_namespaces: -1,
    });
  }
  expect((await app.call("authUser", { body: { username: "ana", password: PASSWORD } })).status).toBe(200);
});

test("ignores a lock and wrong passwords with times in the future", async () => {
  const month = 30 * 24 * 60 * 60;
  app.pass(month);
  for (const status of [401, 401, 429]) expect((await wrong()).status).toBe(status);
  app.pass(-month);
  // The service ignores the lock and the count, because their times are now in the future. The user has all attempts
  // again.
  for (const status of [401, 401, 429]) expect((await wrong()).status).toBe(status);
});

test("requires a name and a password, both texts", async () => {
  expect((await app.call("login", { body: {} })).status).toBe(400);
  expect((await app.call("login", { body: { username: "ana" } })).status).toBe(400);
  expect((await app.call("login", { body: { username: 1, password: "x" } })).status).toBe(422);
});

test("computes the penalties of the rules", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 50].map((n) => penaltyOf(n, 60))).toEqual([
    { lock: 0, kept: 2 },
    { lock: 0, kept: 2 },
    { lock: 1, kept: 2 },
    { lock: 4, kept: 10 },
    { lock: 16, kept: 40 },
    { lock: 60, kept: 60 },
    { lock: 60, kept: 60 },
    { lock: 60, kept: 60 },
  ]);
});

describe.each(["ana", "unknown"])("wrong passwords of %s", (username) => {
  test("answer 401 twice, then lock: 1, 4, 16, 60 minutes", async () => {
    app.stopClock();
    for (const _ of [1, 2]) {
      const { status, headers, body } = await wrong(username);
      expect([status, headers.get("x-account-lockout")]).toEqual([401, "0"]);
      expect(body).toEqual({ message: "wrong user name or password" });
    }
    for (const minutes of [1, 4, 16, 60]) {
      const { status, headers } = await wrong(username);
      expect(status).toBe(429);
      const end = Number(headers.get("x-account-lockout"));
      expect(end).toBe(now() + minutes * 60);
      // The lock refuses every attempt, even with the right password. Attempts during a lock do not count.
      for (const password of ["wrong", PASSWORD]) {
        const locked = await login(username, password);
        expect([locked.status, Number(locked.headers.get("x-account-lockout"))]).toEqual([429, end]);
      }
      app.pass(minutes * 60 + 1);
    }
  });
});

test("resets the count after two minutes, and with a right password", async () => {
  await wrong();
  await wrong();
  app.pass(121);
  expect((await wrong()).status).toBe(401);
  expect((await wrong()).status).toBe(401);
  expect((await login("ana", PASSWORD)).status).toBe(200);
  expect((await wrong()).status).toBe(401);
  expect((await wrong()).status).toBe(401);
  expect((await wrong()).status).toBe(429);
});

test("counts attempts by name and by e-mail together", async () => {
  await wrong("ana");
  await wrong("ana@example.org");
  expect((await wrong("ANA")).status).toBe(429);
});

test("enforces the lock for concurrent guesses", async () => {
  // All attempts have wrong passwords. A successful login could run first and reset the count.
  const answers = await Promise.all(Array.from({ length: 9 }, () => wrong("ana")));
  const statuses = answers.map((answer) => answer.status);
  expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(2);
  expect((await login("ana", PASSWORD)).status).toBe(429);
});

test("ignores X-Real-IP of an untrusted client as a source", async () => {
  await wrong("ana", { "x-real-ip": "203.0.113.1" });
  await wrong("ana", { "x-real-ip": "203.0.113.2" });
  expect((await wrong("ana", { "x-real-ip": "203.0.113.3" })).status).toBe(429);
});

test("accepts X-Real-IP of a trusted proxy as a source", async () => {
  const proxied = await testApp({ trustedProxies: ["127.0.0.1"] });
  await proxied.user("ana");
  const attempt = (ip: string) =>
    proxied.call("login", { body: { username: "ana", password: "wrong" }, headers: { "x-real-ip": ip } });
  for (const _ of [1, 2]) await attempt("203.0.113.1");
  expect((await attempt("203.0.113.1")).status).toBe(429);
  expect((await attempt("203.0.113.2")).status).toBe(401);
});

test("disables lockouts with a maximum of 0", async () => {
  const open = await testApp({ maximumLockout: 0 });
  await open.user("ana");
  for (let n = 0; n < 5; n += 1) {
    expect((await open.call("login", { body: { username: "ana", password: "wrong" } })).status).toBe(401);
  }
});

test("answers 403 to an unconfirmed user, and 401 to an invited user and a user of an identity provider", async () => {
  const change = (data: object) => app.services.db.user.update({ where: { id: ana.id }, data });
  await change({ status: "not-confirmed" });
  expect((await login("ana", PASSWORD)).status).toBe(403);
  await change({ status: "invited" });
  expect((await login("ana", PASSWORD)).status).toBe(401);
  await change({ status: "confirmed", origin: "SAML" });
  expect((await login("ana", PASSWORD)).status).toBe(401);
});

test("takes as long for an unknown name as for a wrong password", async () => {
  const time = async (username: string) => {
    const started = performance.now();
    expect((await wrong(username)).status).toBe(401);
    return performance.now() - started;
  };
  await time("warm");
  // The test alternates between the two names and uses the minimum times, since other load can only increase a time.
  let [known, unknown] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const name of ["ben", "cleo", "dan", "eve", "fay"]) {
    await createUser(app.services, {
      name,
      username: name,
      email: `${name}@example.org`,
      password: PASSWORD,
    });
    known = Math.min(known, await time(name));
    unknown = Math.min(unknown, await time(`no-${name}`));
  }
  expect(unknown).toBeGreaterThan(known / 4);
});

test("stores the password only as bcrypt of cost 10", async () => {
  const body = { password: "another1", current_password: PASSWORD };
  expect((await ana.call("updateUser", { body })).status).toBe(200);
  const user = await app.services.db.user.findUniqueOrThrow({ where: { id: ana.id } });
  expect(user.passwordHash).toMatch(/^\$2[aby]\$10\$/);
});

test("compares passwords of any form", async () => {
  for (const password of ["\u0001", "a".repeat(1000), "😀".repeat(20)]) {
    const fresh = await login("unknown", password);
    expect([401, 429]).toContain(fresh.status);
  }
});
