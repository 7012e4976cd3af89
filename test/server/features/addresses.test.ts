import { describe, expect, test } from "vitest";
import { confirmAddress, signOut } from "../../../server/admin/changeUser.ts";
import { isCurrentPassword } from "../../../server/features/users/proveOwner.ts";
import { enableMfa, testApp, withAppAndUser } from "../http/appOfTest.ts";
import { replacing } from "../http/fixtures.ts";
import { PASSWORD } from "../http/testApp.ts";

const NEW = "ana@new.example.org";
const DAY = 24 * 60 * 60;

const { app, ana } = withAppAndUser({ edition: "cloud" });

const update = async (body: object, token = ana.token) => {
  const answer = await app.call("updateUser", { token, body });
  return [answer.status, answer.body];
};
const stored = () => app.services.db.user.findUniqueOrThrow({ where: { id: ana.id } });
const pending = (...fields: string[]) => ({
  message: expect.stringContaining("after confirmation"),
  pending: fields,
});
const confirm = async (link: URL, more: object = { password: PASSWORD }) => {
  const [id, token] = [link.searchParams.get("id"), link.searchParams.get("token")];
  const answer = await app.call("confirmAddress", { body: { id, token, ...more } });
  return answer.status;
};
const mailsTo = async (address: string) => {
  await app.deliverMails();
  return app.mails.filter(({ to }) => to === address);
};
async function linkTo(address: string): Promise<URL> {
  const mail = (await mailsTo(address)).at(-1);
  return new URL(/^\S*confirm-address\S*$/m.exec(mail?.text ?? "")?.[0] ?? "", app.url);
}

describe("a token without the password", () => {
  test("changes no address: the answer lists it as pending, the old address is notified, and resets go there", async () => {
    expect(await update({ name: "Ana R", email: NEW })).toEqual([200, pending("email")]);
    expect(await stored()).toMatchObject({ name: "Ana R", email: ana.email });
    const [notice] = await mailsTo(ana.email);
    expect(notice?.text).toContain("A new e-mail address was requested");
    expect(notice?.text).not.toContain(NEW);
    const before = (await mailsTo(NEW)).length;
    for (const username of [NEW, "ana"]) await app.call("recoverPassword", { body: { username } });
    expect((await mailsTo(NEW)).length).toBe(before);
    expect((await mailsTo(ana.email)).at(-1)?.subject).toBe("Set a new password");
  });

  test("cannot change the address with a mailbox: confirming requires the password, and guesses lock", async () => {
    await update({ email: "thief@example.net" });
    const link = await linkTo("thief@example.net");
    expect(await confirm(link, {})).toBe(400);
    const statuses = [];
    for (let tries = 0; tries < 3; tries += 1) statuses.push(await confirm(link, { password: "guess" }));
    expect(statuses).toEqual([400, 400, 429]);
    expect(await confirm(link)).toBe(429);
    expect((await stored()).email).toBe(ana.email);
  });

  test("sets the first recovery e-mail of a user without MFA, sends a notice, and sets no later recovery e-mail", async () => {
    expect(await update({ recovery_email: "ana@recovery.org" })).toEqual([200, undefined]);
    expect((await mailsTo(ana.email))[0]?.text).toContain(
      "recovery e-mail address of your account was changed",
    );
    expect(await update({ recovery_email: NEW })).toEqual([200, pending("recovery_email")]);
    expect((await stored()).recoveryEmail).toBe("ana@recovery.org");
    for (const address of [ana.email, "ana@recovery.org"]) {
      expect((await mailsTo(address)).at(-1)?.text).toContain("A new recovery e-mail address was requested");
    }
  });

  test("notifies the user when it turns MFA on", async () => {
    await enableMfa(app, ana);
    for (const address of [ana.email, "ana@recovery.org"]) {
      expect((await mailsTo(address)).at(-1)?.text).toContain("Multi-factor authentication was turned on");
    }
  });

  test("cannot bypass the lock with concurrent guesses of the password", async () => {
    const { services } = app;
    const until = new Date(services.now().getTime() + 60_000);
    const lock = { source: "password", subject: ana.id, attempts: 3, lockedUntil: until, expiresAt: until };
    // Simulates concurrent logins with wrong passwords: they cause the lock while the service is still checking the
    // right password of this request.
    const meanwhile = async (args: Parameters<typeof services.db.loginFailure.findUnique>[0]) => {
      const row = await services.db.loginFailure.findUnique(args);
      await services.db.loginFailure.upsert({ where: args.where, create: lock, update: {} });
      return row;
    };
    const loginFailure = replacing(services.db.loginFailure, { findUnique: meanwhile });
    const db = replacing(services.db, { loginFailure });
    const { signal } = new AbortController();
    const guess = isCurrentPassword({ ...services, db }, await stored(), PASSWORD, signal);
    await expect(guess).rejects.toThrow("too many failed logins");
  });

  test("changes no address in the older form", async () => {
    const params = { id: ana.id };
    const answer = await ana.call("updateUserData", { params, body: { email: NEW } });
    expect([answer.status, answer.body]).toEqual([200, pending("email")]);
    expect((await stored()).email).toBe(ana.email);
  });

  test("may request few changes per hour", async () => {
    for (let count = 0; count < 10; count += 1) {
      expect((await update({ email: `ana@new-${count}.example.org` }))[0]).toBe(200);
    }
    const refused = await ana.call("updateUser", { body: { email: NEW } });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    // Requests that contain the correct current password are not subject to this limit.
    expect(await update({ email: NEW, current_password: PASSWORD })).toEqual([200, undefined]);
  });
});

describe("with the password", () => {
  test("addresses change at once, and the old addresses are notified", async () => {
    const body = { email: NEW, recovery_email: "ana@recovery.org", current_password: PASSWORD };
    expect(await update(body)).toEqual([200, undefined]);
    expect(await stored()).toMatchObject({ email: NEW, recoveryEmail: "ana@recovery.org" });
    expect((await mailsTo(ana.email))[0]?.text).toContain(
      "The e-mail address and recovery e-mail address of your account was changed",
    );
  });

  test("rejects a wrong password, and a code without a password", async () => {
    expect(await update({ email: NEW, current_password: "wrong" })).toEqual([400, ["current_password"]]);
    expect(await update({ email: NEW, code: "123456" })).toEqual([400, ["current_password"]]);
    expect((await stored()).email).toBe(ana.email);
  });

  test("requires a code too with MFA", async () => {
    const { code } = await enableMfa(app, ana);
    const body = { email: NEW, current_password: PASSWORD };
    expect(await update(body)).toEqual([200, pending("email")]);
    const link = await linkTo(NEW);
    expect(await confirm(link)).toBe(400);
    const used = code();
    expect(await update({ ...body, email: "ana@other.example.org", code: used })).toEqual([200, undefined]);
    expect((await stored()).email).toBe("ana@other.example.org");
    expect(await update({ ...body, code: used })).toEqual([400, ["code"]]);
    // A second change to the same address sends a new link and voids the link of the first change.
    expect(await confirm(link, { password: PASSWORD, code: code(1) })).toBe(401);
    await update({ email: NEW });
    const again = await linkTo(NEW);
    expect(await confirm(again, { password: PASSWORD, code: code(1) })).toBe(200);
    expect((await stored()).email).toBe(NEW);
  });
});

describe("confirming", () => {
  test("sets the address, once, within a day", async () => {
    await update({ email: NEW, recovery_email: "ana@recovery.org" });
    const link = await linkTo(NEW);
    expect(link.pathname).toBe("/confirm-address");
    expect(await confirm(link)).toBe(200);
    expect((await stored()).email).toBe(NEW);
    expect(await confirm(link)).toBe(401);
    const entry = await app.services.db.auditEntry.findFirst({ where: { operation: "confirmAddress" } });
    expect(entry).toMatchObject({ actorId: ana.id, objectId: ana.id });
    await update({ email: "ana@late.example.org" });
    const late = await linkTo("ana@late.example.org");
    app.pass(DAY + 1);
    expect(await confirm(late)).toBe(401);
  });

  test("confirms two pending addresses independently", async () => {
    await update({ recovery_email: "first@recovery.org" });
    expect(await update({ email: NEW, recovery_email: "ana@recovery.org" })).toEqual([
      200,
      pending("email", "recovery_email"),
    ]);
    expect(await confirm(await linkTo(NEW))).toBe(200);
    expect(await stored()).toMatchObject({ email: NEW, recoveryEmail: "first@recovery.org" });
    expect(await confirm(await linkTo("ana@recovery.org"))).toBe(200);
    expect((await stored()).recoveryEmail).toBe("ana@recovery.org");
  });

  test("does not reserve a pending address", async () => {
    await update({ email: NEW });
    const link = await linkTo(NEW);
    const bob = await app.user("bob");
    expect(await update({ email: NEW, current_password: PASSWORD }, bob.token)).toEqual([200, undefined]);
    expect(await confirm(link)).toBe(409);
    expect((await stored()).email).toBe(ana.email);
  });

  test("needs the token's own user, and stores a digest of the token", async () => {
    await update({ email: NEW });
    const link = await linkTo(NEW);
    const bob = await app.user("bob");
    const token = link.searchParams.get("token") ?? "";
    const answer = await app.call("confirmAddress", { body: { id: bob.id, token, password: PASSWORD } });
    expect(answer.status).toBe(401);
    expect(JSON.stringify(await app.services.db.mailToken.findMany())).not.toContain(token);
  });

  test.each(["a new password", "a logout by the operator"])("is void after %s", async (how) => {
    await update({ email: NEW });
    const link = await linkTo(NEW);
    if (how === "a new password") {
      await update({ password: "another-horse", current_password: PASSWORD });
      expect(await confirm(link, { password: "another-horse" })).toBe(401);
    } else {
      await signOut(app.services, { request: { id: "test" }, user: "ana" });
      expect(await confirm(link)).toBe(401);
    }
    expect((await stored()).email).toBe(ana.email);
  });

  test("is left to the operator without a password or without mail", async () => {
    await app.services.db.user.update({ where: { id: ana.id }, data: { origin: "SAML" } });
    await update({ email: NEW });
    expect(await confirm(await linkTo(NEW))).toBe(403);
    const command = { request: { id: "test" }, user: "ana" };
    // Another request may have replaced the pending address in the meantime. The operator therefore passes the address
    // that the command should confirm.
    const confirmPending = (address: string) => confirmAddress(app.services, command, address);
    await expect(confirmPending("thief@example.net")).rejects.toThrow("is not an unconfirmed address");
    expect(await confirmPending(NEW.toUpperCase())).toEqual({ id: ana.id, field: "email" });
    expect((await stored()).email).toBe(NEW);
    await expect(confirmPending(NEW)).rejects.toThrow("is not an unconfirmed address");
  });
});

test.each(["community", "enterprise"] as const)("the %s edition confirms addresses too", async (edition) => {
  const other = await testApp({ edition });
  const { id, token, email } = await other.user("eve");
  expect((await other.call("updateUser", { token, body: { email: NEW } })).body).toEqual(pending("email"));
  await other.deliverMails();
  expect(other.mails.map(({ to }) => to).sort()).toEqual([NEW, email].sort());
  // Without a public URL, links are relative.
  const link = new URL(
    /^\/confirm-address\S*$/m.exec(other.mails.find(({ to }) => to === NEW)?.text ?? "")?.[0] ?? "",
    other.url,
  );
  const body = { id, token: link.searchParams.get("token"), password: PASSWORD };
  expect((await other.call("confirmAddress", { body })).status).toBe(200);
  expect(await other.services.db.user.count({ where: { email: NEW } })).toBe(1);
});
