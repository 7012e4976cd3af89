import { describe, expect, test } from "vitest";
import { forgetAccounts } from "../../../server/features/users/account/registerUser.ts";
import { expectError, statusesOf } from "../http/answers.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { PASSWORD, PUBLIC_URL, valuesOf } from "../http/testApp.ts";

const DAY = 24 * 3600;

const app = withSharedApp({ edition: "cloud" });

/** Delivers all mails. Returns the newest mail to the address, with the parameters of the link in the mail. */
async function mailTo(email: string) {
  await app.deliverMails();
  const mail = app.mails.findLast(({ to }) => to === email);
  const link = new URL(/https:\S+/.exec(mail?.text ?? "")?.[0] ?? "none:");
  return { mail, link, of: (name: string) => link.searchParams.get(name) ?? "" };
}
const mailsTo = (email: string) => app.mails.filter(({ to }) => to === email).length;

const account = (name: string, more: object = {}) => ({
  name: "A Person",
  email: `${name}@example.org`,
  username: name,
  password: PASSWORD,
  email_marketing: false,
  ...more,
});
const register = (name: string, more: object = {}) => app.call("registerUser", { body: account(name, more) });
const login = async (username: string, password = PASSWORD) =>
  (await app.call("login", { body: { username, password } })).status;
const confirm = async (query: { email: string; token: string }) =>
  (await app.call("validateAccount", { query })).status;

describe("registration", () => {
  test("creates an account that works after its address is confirmed by a link, which works once", async () => {
    const { status, text } = await register("Ana", { email: "Ana@Example.org" });
    expect([status, text]).toEqual([200, ""]);
    expect(await login("ana")).toBe(403);
    const { link, of } = await mailTo("ana@example.org");
    expect([link.origin, link.pathname]).toEqual([PUBLIC_URL, "/validation-account"]);
    const query = { email: "ANA@example.org", token: of("token") };
    expect(await confirm({ ...query, token: "00000000-0000-4000-8000-000000000000" })).toBe(404);
    expect(await confirm({ ...query, email: "bob@example.org" })).toBe(404);
    expect([await confirm(query), await confirm(query)]).toEqual([200, 404]);
    expect(await login("ana")).toBe(200);
  });

  test.each([
    [
      { name: "", email: "none", username: "a", password: "with space" },
      ["name", "email", "username", "password"],
    ],
    [{ password: "a".repeat(65) }, ["password"]],
    [{ email: `${"a".repeat(65)}@example.org` }, ["email"]],
    [{ password: "" }, ["password"]],
  ])("rejects %j with 400 and the names of the fields", async (more, names) => {
    const { status, body } = await register("wrong", more);
    expect([status, body.toSorted()]).toEqual([400, names.toSorted()]);
  });

  test("rejects names and addresses that exist, also in concurrent requests", async () => {
    await app.user("taken");
    expect((await register("TAKEN")).body).toEqual(["username", "email"]);
    expect((await register("other", { email: "Taken@example.org" })).body).toEqual(["email"]);
    expect(await statusesOf([register("once"), register("once"), register("once")])).toEqual([200, 409, 409]);
  });

  test("rejects a sig without an invitation with 401, and stores nothing", async () => {
    expect((await register("sigless", { sig: "nonsense" })).status).toBe(401);
    expect(await app.services.db.user.count({ where: { username: "sigless" } })).toBe(0);
  });

  test("voids the older token with each new mail; tokens work for 24 hours", async () => {
    await register("carl");
    const first = (await mailTo("carl@example.org")).of("token");
    expect((await app.call("resendEmail", { body: { username: "CARL" } })).status).toBe(200);
    const second = (await mailTo("carl@example.org")).of("token");
    const email = "carl@example.org";
    expect(second).not.toBe(first);
    expect(await confirm({ email, token: first })).toBe(404);
    app.pass(DAY);
    expect(await confirm({ email, token: second })).toBe(404);
    await app.call("resendEmail", { body: { username: "carl" } });
    expect(await confirm({ email, token: (await mailTo(email)).of("token") })).toBe(200);
  });

  test("deletes an unconfirmed account after a week", async () => {
    await register("ghost");
    await mailTo("ghost@example.org");
    const count = () => app.services.db.user.count({ where: { username: "ghost" } });
    app.pass(6 * DAY);
    await forgetAccounts(app.services);
    expect(await count()).toBe(1);
    app.pass(DAY);
    await forgetAccounts(app.services);
    expect(await count()).toBe(0);
  });
});

test("sends no text of unauthenticated clients in mails", async () => {
  await register("dora", { name: "Visit https://evil.example" });
  expect((await mailTo("dora@example.org")).mail?.text).not.toContain("evil");
});

describe("recovery", () => {
  const recover = async (username: string) =>
    (await app.call("recoverPassword", { body: { username } })).status;
  const set = async (uid: string, token: string, password = "another-horse") =>
    (await app.call("updateRecoverPassword", { params: { uid }, body: { token, password } })).status;

  test("sets a new password once, and ends all logins", async () => {
    const user = await app.user("emil");
    expect(await recover("Emil@example.org")).toBe(200);
    const { link, of } = await mailTo(user.email);
    expect([link.origin, link.pathname, of("id")]).toEqual([PUBLIC_URL, "/update-password", user.id]);
    for (let attempt = 0; attempt < 3; attempt += 1) await login("emil", "wrong");
    expect(await set(user.id, of("token"), "abc")).toBe(400);
    expect([await set(user.id, of("token")), await set(user.id, of("token"))]).toEqual([200, 401]);
    expect((await user.call("getUserInfo")).status).toBe(401);
    // The new password has ended the lock that wrong passwords caused.
    expect([await login("emil"), await login("emil", "another-horse")]).toEqual([401, 200]);
  });

  test("rejects tokens of other users, tokens for other purposes and expired tokens", async () => {
    const user = await app.user("fred");
    const other = await app.user("gina");
    await register("hugo");
    const activation = (await mailTo("hugo@example.org")).of("token");
    const hugo = await app.services.db.user.findUniqueOrThrow({ where: { username: "hugo" } });
    expect(await set(hugo.id, activation)).toBe(401);
    await recover("fred");
    const token = (await mailTo(user.email)).of("token");
    expect(await set(other.id, token)).toBe(401);
    app.pass(DAY);
    expect(await set(user.id, token)).toBe(401);
  });

  test("voids the token after a change of password or address", async () => {
    for (const [name, body] of [
      ["ida", { password: "another-horse", current_password: PASSWORD }],
      ["jan", { email: "jan-new@example.org", current_password: PASSWORD }],
    ] as const) {
      const user = await app.user(name);
      await recover(name);
      const token = (await mailTo(user.email)).of("token");
      expect((await app.call("updateUser", { token: await app.tokenOf(user), body })).status).toBe(200);
      expect(await set(user.id, token)).toBe(401);
    }
  });

  test("answers identically for unknown and unrecoverable accounts, and sends no mail", async () => {
    await register("karl");
    await app.deliverMails();
    const before = app.mails.length;
    expect([await recover("unknown"), await recover("unknown@example.org"), await recover("karl")]).toEqual([
      200, 200, 200,
    ]);
    expect((await app.call("resendEmail", { body: { username: "unknown" } })).status).toBe(200);
    await app.deliverMails();
    expect(app.mails.length).toBe(before);
    expect(await app.services.db.outgoingMail.count()).toBe(0);
  });

  test("sends one mail for repeated requests", async () => {
    const { email } = await app.user("lena");
    for (let count = 0; count < 5; count += 1) await recover("lena");
    await app.deliverMails();
    expect(mailsTo(email)).toBe(1);
  });

  test("stores a token as a digest, and a waiting mail encrypted", async () => {
    // The name is long, so that an encrypted text does not contain it by chance.
    const user = await app.user("mona-who-forgot");
    await recover(user.username);
    const waiting = JSON.stringify(await app.services.db.outgoingMail.findMany());
    expect(waiting).not.toContain(user.username);
    const token = (await mailTo(user.email)).of("token");
    expect(JSON.stringify(await app.services.db.mailToken.findMany())).not.toContain(token);
  });
});

describe("the older forms of updateUser", () => {
  test("change only the caller", async () => {
    const user = await app.user("nora");
    const other = await app.user("otto");
    const data = async (id: string, body: object) => {
      const answer = await user.call("updateUserData", { params: { id }, body });
      return [answer.status, answer.body];
    };
    expect(await data(other.id, { name: "X" })).toEqual([
      403,
      { message: "id: users can change only their own account" },
    ]);
    expect(await data(user.id, { email: "none" })).toEqual([400, ["email"]]);
    expect(await data(user.id, { username: "otto" })).toEqual([409, ["username"]]);
    expect(await data(user.id, { name: "Nora N", recovery_email: "N@x.org" })).toEqual([200, undefined]);
    const stored = await app.services.db.user.findUniqueOrThrow({ where: { id: user.id } });
    expect(stored).toMatchObject({ name: "Nora N", recoveryEmail: "n@x.org" });
  });

  test("set a password with the current one, and end all logins", async () => {
    const user = await app.user("paul");
    const change = async (current: string, password: string, id = user.id) => {
      const body = { current_password: current, new_password: password };
      return app.call("updateUserPassword", { token: await app.tokenOf(user), params: { id }, body });
    };
    expect((await change(PASSWORD, "another-horse", "0".repeat(24))).status).toBe(403);
    for (const [current, password, message] of [
      ["wrong-horse", "another-horse", "current_password: the password is wrong"],
      [PASSWORD, PASSWORD, "new_password must differ from current_password"],
      [PASSWORD, "abc", "new_password must have at least 5 characters"],
    ] as const) {
      expectError(await change(current, password), 400, message);
    }
    expect((await change(PASSWORD, "another-horse")).status).toBe(200);
    expect((await user.call("getUserInfo")).status).toBe(401);
    expect(await login("paul", "another-horse")).toBe(200);
  });

  test("count wrong passwords like logins", async () => {
    const { id, token } = await app.user("quin");
    const body = { current_password: "wrong-horse", new_password: "another-horse" };
    const answers: number[] = [];
    for (let count = 0; count < 3; count += 1)
      answers.push((await app.call("updateUserPassword", { token, params: { id }, body })).status);
    expect(answers).toEqual([400, 400, 429]);
  });
});

describe("deleteUser", () => {
  test("deletes the user from all namespaces permanently", async () => {
    const owner = await app.user("rita", "ritas");
    const user = await app.user("sven");
    const addedAt = app.services.now();
    const membership = { tenantId: owner.tenant, userId: user.id, role: "operator", addedAt };
    await app.services.db.member.create({ data: membership });
    const { status, text } = await user.call("deleteUser");
    expect([status, text]).toEqual([204, ""]);
    expect((await user.call("getUserInfo")).status).toBe(401);
    expect(await login("sven")).toBe(401);
    const params = { tenant: owner.tenant };
    const { body } = await app.call("getNamespace", { token: await app.tokenOf(owner), params });
    expect(valuesOf(body.members, "id")).toEqual([owner.id]);
    const trail = await app.call("getAuditTrail", { token: await app.tokenOf(owner), params });
    expect(trail.body[0]).toMatchObject({ operation: "deleteUser", after: null });
  });

  test("refuses an owner", async () => {
    const owner = await app.user("tina", "tinas");
    expect((await owner.call("deleteUser")).status).toBe(403);
    expect(await login("tina")).toBe(200);
  });
});
