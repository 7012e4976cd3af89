import { createHash, sign } from "node:crypto";
import { decodeJwt } from "jose";
import { beforeEach, describe, expect, test } from "vitest";
import { signOut } from "../../../server/admin/changeUser.ts";
import { createUser } from "../../../server/features/users/account/createUser.ts";
import { statusesOf } from "../http/answers.ts";
import { testApp, withAppAndUser, withSharedApp } from "../http/appOfTest.ts";
import { PASSWORD, type TestApp } from "../http/testApp.ts";

describe("updateUser", () => {
  const { app, ana } = withAppAndUser();
  beforeEach(async () => {
    await app.user("bob");
  });

  const update = async (body: unknown) => {
    const answer = await ana.call("updateUser", { body });
    return [answer.status, answer.body];
  };
  const stored = () => app.services.db.user.findUniqueOrThrow({ where: { id: ana.id } });

  test("changes the given fields, stores names in lower case, and ignores empty fields", async () => {
    const changes = {
      name: "Ana R",
      username: "Ana.R",
      email: "Ana.R@example.org",
      recovery_email: "A@r.org",
    };
    expect(await update({ ...changes, current_password: PASSWORD })).toEqual([200, undefined]);
    const empty = {
      name: "",
      username: "",
      email: "",
      recovery_email: "",
      password: "",
      current_password: "",
    };
    expect(await update(empty)).toEqual([200, undefined]);
    expect(await update({})).toEqual([200, undefined]);
    expect(await stored()).toMatchObject({
      name: "Ana R",
      username: "ana.r",
      email: "ana.r@example.org",
      recoveryEmail: "a@r.org",
    });
  });

  test("rejects wrong or taken values with the names of the fields", async () => {
    for (const [body, status, answer] of [
      [{ email: "none" }, 400, ["email"]],
      [{ username: "a", email: "none", recovery_email: "x" }, 400, ["username", "email", "recovery_email"]],
      [{ recovery_email: "ana@example.org" }, 400, ["email", "recovery_email"]],
      [{ email: "new@x.org", recovery_email: "NEW@x.org" }, 400, ["email", "recovery_email"]],
      [{ email: "new@x.org", recovery_email: "ana@example.org" }, 400, ["email", "recovery_email"]],
      [{ password: "another1" }, 400, ["current_password"]],
      [{ password: "another1", current_password: "wrong" }, 400, ["password"]],
      [{ password: "abc", current_password: PASSWORD }, 400, ["password"]],
      [{ username: "BOB" }, 409, ["username"]],
      [{ username: "bob", email: "bob@example.org" }, 409, ["username", "email"]],
      [{ username: "ana", email: "ana@example.org" }, 200, undefined],
      [{ name: 5 }, 422, { message: "name must be a string" }],
    ] as const) {
      expect(await update(body), JSON.stringify(body)).toEqual([status, answer]);
    }
  });

  test("rejects the recovery address as an e-mail", async () => {
    await update({ recovery_email: "safe@x.org" });
    expect(await update({ email: "safe@x.org" })).toEqual([400, ["email", "recovery_email"]]);
  });

  test("replaces the old password", async () => {
    expect(await update({ password: "another1", current_password: PASSWORD })).toEqual([200, undefined]);
    const login = async (password: string) =>
      (await app.call("login", { body: { username: "ana", password } })).status;
    expect([await login(PASSWORD), await login("another1")]).toEqual([401, 200]);
  });

  test("accepts one of two concurrent requests for one name", async () => {
    const bob = await app.user("carl");
    const answers = await Promise.all(
      [ana.token, bob.token].map((token) => app.call("updateUser", { token, body: { username: "wanted" } })),
    );
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409]);
    expect(answers.find((answer) => answer.status === 409)?.body).toEqual(["username"]);
  });

  test("rejects a deleted user's token without a namespace", async () => {
    const deleted = await app.user("deleted");
    await app.services.db.user.delete({ where: { id: deleted.id } });
    expect((await deleted.call("updateUser", { body: {} })).status).toBe(401);
    expect((await deleted.call("getUserInfo")).status).toBe(401);
  });
});

describe("setup", () => {
  const body = { name: "Ana Reis", username: "Ana.Reis", email: "Ana@example.org", password: PASSWORD };
  const linkOf = (app: TestApp) =>
    createHash("sha256")
      .update(sign("sha256", Buffer.from("shellhub"), app.services.keys.privateKey))
      .digest("hex");

  test("creates the first user with a personal namespace, once", async () => {
    const app = await testApp();
    const attempt = (query: Record<string, string>, more = {}) =>
      app.call("setup", { query, body: { ...body, ...more } });
    const query = { sign: linkOf(app) };
    expect((await app.call("getInfo")).body.setup).toBe(false);
    expect((await attempt({})).status).toBe(400);
    expect((await attempt({ sign: "0".repeat(64) })).status).toBe(403);
    expect((await attempt(query, { name: "A" })).status).toBe(400);
    expect(
      await statusesOf([attempt(query), attempt(query, { username: "second", email: "b@example.org" })]),
    ).toEqual([200, 403]);
    expect((await attempt(query, { username: "third", email: "c@example.org" })).status).toBe(403);
    expect((await app.call("getInfo")).body.setup).toBe(true);
    const user = await app.services.db.user.findFirstOrThrow();
    const session = await app.call("login", { body: { username: user.username, password: PASSWORD } });
    expect(session.body).toMatchObject({ role: "owner", max_namespaces: -1 });
    const { body: space } = await app.call("getNamespace", {
      token: session.body.token,
      params: { tenant: session.body.tenant },
    });
    expect(space).toMatchObject({ type: "personal", max_devices: -1, settings: { session_record: false } });
    expect(space.settings.connection_announcement).not.toBe("");
    expect(space.name).toBe(user.username.replace(".", "-"));
  });
});

describe("getInfo", () => {
  test("returns the requested address, or the configured one", async () => {
    const app = await testApp();
    const address = new URL(app.url);
    expect((await app.call("getInfo", { query: { agent_version: "v0.19.0" } })).body).toEqual({
      version: "v0.19.0",
      endpoints: { ssh: "127.0.0.1:22", api: address.host },
      setup: false,
      authentication: { local: true, saml: false },
    });
    const spoofed = await app.call("getInfo", { headers: { "x-forwarded-host": "evil.example" } });
    expect(spoofed.body.endpoints.api).toBe(address.host);
    expect((await app.send("GET", "/api/info")).body.version).toBe("v0.19.0");
    for (const path of ["/healthcheck", "/api/healthcheck"])
      expect((await app.send("GET", path)).status).toBe(200);

    const configured = await testApp({ sshEndpoint: "ssh.x.org:2222", trustedProxies: ["127.0.0.1"] });
    const headers = { "x-forwarded-host": "api.x.org", "x-forwarded-proto": "https" };
    expect((await configured.call("getInfo", { headers })).body.endpoints).toEqual({
      ssh: "ssh.x.org:2222",
      api: "api.x.org:443",
    });
  });
});

describe("the session's namespace", () => {
  const app = withSharedApp();

  test("is the user's first namespace, and later the last namespace that the user switched to", async () => {
    const ana = await app.user("ana", "first");
    const second = await ana.call("createNamespace", { body: { name: "second" } });
    const login = async () =>
      (await app.call("login", { body: { username: "ana", password: PASSWORD } })).body;
    expect((await login()).tenant).toBe(ana.tenant);
    const tenant = second.body.tenant_id;
    const switched = await ana.call("getToken", { params: { tenant } });
    expect(switched.body).toMatchObject({ tenant, role: "owner" });
    expect((await login()).tenant).toBe(tenant);
    expect((await ana.call("getUserInfo")).body.tenant).toBe(tenant);
    await app.call("deleteNamespace", { token: switched.body.token, params: { tenant } });
    expect((await login()).tenant).toBe(ana.tenant);
  });

  test("must be a namespace of the user", async () => {
    const bob = await app.user("bob");
    const eve = await app.user("eve", "eves");
    for (const tenant of [eve.tenant, "00000000-0000-4000-8000-000000000000"]) {
      expect((await bob.call("getNamespaceToken", { params: { tenant } })).status).toBe(404);
    }
    expect((await bob.call("getNamespaceToken", { params: { tenant: "x" } })).status).toBe(404);
  });

  test("is empty while the membership is pending", async () => {
    const { id, token, tenant } = await app.user("pia", "pending");
    await app.services.db.member.updateMany({ where: { userId: id }, data: { status: "pending" } });
    const { body } = await app.call("login", { body: { username: "pia", password: PASSWORD } });
    expect(body).toMatchObject({ tenant: "", role: "" });
    expect((await app.call("getDevices", { token })).status).toBe(401);
    expect((await app.call("getNamespace", { token: body.token, params: { tenant } })).status).toBe(403);
    expect((await app.call("getNamespaces", { token: body.token })).body).toEqual([]);
  });
});

test("createUser stores names in lower case and rejects taken ones", async () => {
  const app = await testApp();
  const user = { name: "X", username: "Xena", email: "Xena@X.org", password: PASSWORD };
  const { id } = await createUser(app.services, user);
  expect(await app.services.db.user.findUnique({ where: { id } })).toMatchObject({
    username: "xena",
    email: "xena@x.org",
    maxNamespaces: -1,
  });
  await expect(createUser(app.services, user)).rejects.toThrow(
    "username or email: another user has this name or address",
  );
});

describe("a new password", () => {
  const app = withSharedApp();
  const change = (token: string, current: string) =>
    app.call("updateUser", { token, body: { password: "another-horse", current_password: current } });

  const statusWith = async (token: string, id: "getUserInfo" | "getDevices" = "getUserInfo") =>
    (await app.call(id, { token })).status;
  const secondsLeft = (token: string) => Number(decodeJwt(token).exp) - app.services.now().getTime() / 1000;

  test("voids the user's other tokens", async () => {
    const user = await app.user("pat", "pats");
    const { body } = await app.call("login", { body: { username: "pat", password: PASSWORD } });
    expect((await change(user.token, PASSWORD)).status).toBe(200);
    expect([await statusWith(body.token), await statusWith(body.token, "getDevices")]).toEqual([401, 401]);
    const login = await app.call("login", { body: { username: "pat", password: "another-horse" } });
    expect(await statusWith(login.body.token)).toBe(200);
  });

  test("keeps the changing token for an hour, and derived tokens until its end", async () => {
    const user = await app.user("kim", "kims");
    const other = await user.call("createNamespace", { body: { name: "kims-other" } });
    expect((await change(user.token, PASSWORD)).status).toBe(200);
    app.pass(59 * 60);
    expect([await statusWith(user.token), await statusWith(user.token, "getDevices")]).toEqual([200, 200]);
    const session = await user.call("getUserInfo");
    const switched = await user.call("getToken", { params: { tenant: other.body.tenant_id } });
    const derived: string[] = [session.body.token, switched.body.token];
    for (const token of derived) {
      expect(await statusWith(token, "getDevices")).toBe(200);
      expect(secondsLeft(token)).toBeLessThanOrEqual(60);
      const again = await app.call("getUserInfo", { token });
      expect(secondsLeft(again.body.token)).toBeLessThanOrEqual(60);
    }
    app.pass(61);
    for (const token of [user.token, ...derived]) expect(await statusWith(token)).toBe(401);
  });

  test("does not extend the hour if the same token changes the password again", async () => {
    const { token } = await app.user("lou");
    expect((await change(token, PASSWORD)).status).toBe(200);
    app.pass(30 * 60);
    const body = { password: "third-horse", current_password: "another-horse" };
    expect((await app.call("updateUser", { token, body })).status).toBe(200);
    expect(await statusWith(token)).toBe(200);
    app.pass(30 * 60 + 1);
    expect(await statusWith(token)).toBe(401);
  });

  test.each(["the operator's command", "a password set elsewhere"])(
    "voids the changing token with %s",
    async (how) => {
      const username = how.startsWith("the") ? "mia" : "nik";
      const user = await app.user(username);
      expect((await change(user.token, PASSWORD)).status).toBe(200);
      if (username === "mia") {
        await signOut(app.services, { request: { id: "test" }, user: username });
      } else {
        const login = await app.call("login", { body: { username, password: "another-horse" } });
        const body = { password: "third-horse", current_password: "another-horse" };
        expect((await app.call("updateUser", { token: login.body.token, body })).status).toBe(200);
      }
      expect(await statusWith(user.token)).toBe(401);
    },
  );

  test("keeps the token in the older form too", async () => {
    const { id, token } = await app.user("oda");
    const body = { current_password: PASSWORD, new_password: "another-horse" };
    const { status } = await app.call("updateUserPassword", { token, params: { id }, body });
    expect([status, await statusWith(token)]).toEqual([200, 200]);
  });

  test("locks after wrong old passwords, like logins", async () => {
    const { token } = await app.user("quin");
    expect((await change(token, "wrong-1")).status).toBe(400);
    expect((await change(token, "wrong-2")).status).toBe(400);
    expect((await change(token, "wrong-3")).status).toBe(429);
    const locked = await change(token, PASSWORD);
    expect(locked.status).toBe(429);
    expect(Number(locked.headers.get("x-account-lockout"))).toBeGreaterThan(0);
    app.pass(61);
    expect((await change(token, PASSWORD)).status).toBe(200);
  });
});
