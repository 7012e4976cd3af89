import { TOTP } from "otpauth";
import { beforeEach, expect, test } from "vitest";
import { statusesOf } from "../http/answers.ts";
import { enableMfa, withAppAndUser } from "../http/appOfTest.ts";
import { PASSWORD } from "../http/testApp.ts";

let secret: string;
let recoveryCodes: string[];
let earlierMails = 0;
const resetMails = () => app.mails.slice(earlierMails);

const RECOVERY = "ana@recovery.org";

const { app, ana } = withAppAndUser({ trustedProxies: ["127.0.0.1"] });
beforeEach(async () => {
  ({ secret, recoveryCodes } = await enableMfa(app, ana));
  // Delivers the notice about the first recovery e-mail address, so that it is not among the later mails.
  await app.deliverMails();
  earlierMails = app.mails.length;
});

const code = (steps = 0) =>
  new TOTP({ secret }).generate({ timestamp: app.services.now().getTime() + steps * 30_000 });
const wrongCode = () => {
  const right = [-1, 0, 1].map((steps) => code(steps));
  return ["000000", "111111", "222222", "333333"].find((given) => !right.includes(given)) ?? "";
};
const enable = () => ana.call("enableMfa", { body: { code: code(), secret, recovery_codes: recoveryCodes } });
const disable = (body: object) => ana.call("disableMfa", { body });
const HOME = "203.0.113.1";
const from = (ip: string) => ({ headers: { "x-real-ip": ip } });
const recover = (recovery_code: string, identifier = "ana", ip = HOME) =>
  app.call("recoverMfa", { body: { identifier, recovery_code }, ...from(ip) });
async function requestReset(identifier: string, ip = HOME) {
  const answer = await app.call("requestResetMfa", { body: { identifier }, ...from(ip) });
  await app.deliverMails();
  return answer;
}
const reset = (main: string, recovery: string, id = ana.id, ip = HOME) =>
  app.call("resetMfa", {
    params: { "user-id": id },
    body: { main_email_code: main, recovery_email_code: recovery },
    ...from(ip),
  });
const enabled = async () => (await login()).status === 401;
const login = () => app.call("login", { body: { username: "ana", password: PASSWORD } });
const recoveryCode = (index: number) => recoveryCodes[index] ?? "";

/** Returns the codes in the latest mails to the e-mail address and to the recovery e-mail address. */
function mailedCodes() {
  const codeTo = (address: string) => {
    const mail = app.mails.findLast(({ to }) => to === address);
    return /^[A-Z2-7]{16}$/m.exec(mail?.text ?? "")?.[0] ?? "";
  };
  return { main: codeTo(ana.email), recovery: codeTo(RECOVERY) };
}

const entries = () =>
  app.services.db.auditEntry.findMany({ where: { tenantId: null }, orderBy: { id: "asc" } });

test("disables with a TOTP code, once, and records it in the audit trail", async () => {
  expect((await disable({ code: wrongCode() })).status).toBe(403);
  expect(await enabled()).toBe(true);
  expect((await disable({ code: code() })).status).toBe(200);
  expect((await login()).status).toBe(200);
  expect((await disable({ code: code(1) })).status).toBe(400);
  expect(await app.services.db.recoveryCode.count()).toBe(0);
  const [entry] = (await entries()).slice(-1);
  expect(entry).toMatchObject({ operation: "disableMfa", actorId: ana.id, objectId: ana.id });
  expect(JSON.parse(entry?.after ?? "{}")).toMatchObject({ mfa: false });
});

test("rejects a login's code for disabling", async () => {
  const given = code();
  const token = (await login()).headers.get("x-mfa-token") ?? "";
  expect((await app.call("authMfa", { body: { token, code: given } })).status).toBe(200);
  expect((await disable({ code: given })).status).toBe(403);
});

test("requires exactly one of code and recovery code for disabling, and ignores empty codes", async () => {
  expect((await disable({})).status).toBe(400);
  expect((await disable({ code: "", recovery_code: "" })).status).toBe(400);
  expect((await disable({ code: code(), recovery_code: recoveryCode(0) })).status).toBe(400);
  expect((await disable({ code: "", recovery_code: "AAAABBBBCCCCDDDD" })).status).toBe(403);
  expect((await disable({ code: "", recovery_code: recoveryCode(0) })).status).toBe(200);
  expect(await enabled()).toBe(false);
});

test("limits guesses of codes to five, together with logins", async () => {
  const token = (await login()).headers.get("x-mfa-token") ?? "";
  const answers = await Promise.all(Array.from({ length: 8 }, () => disable({ code: wrongCode() })));
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  expect([count(403), count(429)]).toEqual([5, 3]);
  expect((await disable({ code: code() })).status).toBe(429);
  expect((await disable({ recovery_code: recoveryCode(0) })).status).toBe(429);
  expect((await app.call("authMfa", { body: { token, code: code() } })).status).toBe(429);
  app.pass(30 * 60 + 1);
  expect((await disable({ code: code() })).status).toBe(200);
});

test("logs in with a recovery code, once, by username or e-mail address", async () => {
  app.stopClock();
  const { status, body, headers } = await recover(recoveryCode(0));
  expect(status).toBe(200);
  expect(body).toMatchObject({ user: "ana", mfa: true, tenant: ana.tenant });
  expect(Number(headers.get("x-expires-at"))).toBe(app.services.now().getTime() / 1000 + 600);
  expect((await app.call("getNamespaces", { token: body.token })).status).toBe(200);
  expect((await recover(recoveryCode(0))).status).toBe(401);
  expect((await recover(recoveryCode(1), ana.email.toUpperCase())).status).toBe(200);
  expect(await enabled()).toBe(true);
});

test("accepts one of two concurrent logins with one recovery code", async () => {
  expect(await statusesOf([recover(recoveryCode(0)), recover(recoveryCode(0))])).toEqual([200, 401]);
});

test("disables with a recovery code that logged in, for ten minutes", async () => {
  await recover(recoveryCode(0));
  await recover(recoveryCode(1));
  app.pass(9 * 60);
  expect((await disable({ recovery_code: recoveryCode(1) })).status).toBe(200);
  expect((await enable()).status).toBe(200);
  await recover(recoveryCode(0));
  app.pass(10 * 60 + 1);
  expect((await disable({ recovery_code: recoveryCode(0) })).status).toBe(403);
  expect(await enabled()).toBe(true);
});

test("rejects a code of another user, and for a user without MFA", async () => {
  const ben = await app.user("ben");
  expect((await recover(recoveryCode(0), "ben")).status).toBe(401);
  expect((await recover(recoveryCode(0), ben.email)).status).toBe(401);
  expect((await recover(recoveryCode(0), "unknown")).status).toBe(401);
  expect((await recover("AAAABBBBCCCCDDDD")).status).toBe(401);
});

test.each(["ana", "unknown"])("limits guesses of recovery codes to five for %s", async (name) => {
  const guess = () => recover("AAAABBBBCCCCDDDD", name);
  const answers = await Promise.all(Array.from({ length: 7 }, guess));
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  expect([count(401), count(429)]).toEqual([5, 2]);
  expect((await recover(recoveryCode(0), name)).status).toBe(429);
  // The lock applies only to recovery codes: an attacker who sends wrong recovery codes must not prevent the user from
  // logging in with a code of the authenticator app.
  const token = (await login()).headers.get("x-mfa-token") ?? "";
  expect((await app.call("authMfa", { body: { token, code: code() } })).status).toBe(200);
  app.pass(30 * 60 + 1);
  expect((await recover(recoveryCode(0))).status).toBe(200);
});

test("ignores attempts with times in the future", async () => {
  const month = 30 * 24 * 60 * 60;
  app.pass(month);
  for (let tries = 0; tries < 6; tries += 1) await recover("AAAABBBBCCCCDDDD");
  expect((await recover(recoveryCode(0))).status).toBe(429);
  app.pass(-month);
  expect((await recover(recoveryCode(0))).status).toBe(200);
});

test("keeps recovery and reset available during attacks from other addresses", {
  tags: ["long"],
}, async () => {
  const guess = "AAAABBBBCCCCDDDD";
  await requestReset("ana");
  const { main, recovery } = mailedCodes();
  for (const ip of ["198.51.100.1", "198.51.100.2"]) {
    for (let tries = 0; tries < 6; tries += 1) {
      const status = tries < 5 ? 401 : 429;
      expect((await recover(guess, "ana", ip)).status).toBe(status);
      expect((await reset(guess, guess, ana.id, ip)).status).toBe(status);
    }
  }
  expect((await recover(recoveryCode(0))).status).toBe(200);
  expect((await reset(main, recovery)).status).toBe(200);
});

test("disables MFA and logs in with two different mailed codes", async () => {
  expect((await requestReset("ana")).status).toBe(200);
  expect(
    resetMails()
      .map(({ to }) => to)
      .sort(),
  ).toEqual([ana.email, RECOVERY].sort());
  const { main, recovery } = mailedCodes();
  expect(main).not.toBe(recovery);
  expect((await reset(recovery, main)).status).toBe(401);
  expect((await reset(main, main)).status).toBe(401);
  const { status, body } = await reset(main, recovery);
  expect(status).toBe(200);
  expect(body).toMatchObject({ user: "ana", mfa: false, tenant: ana.tenant });
  expect((await app.call("getNamespaces", { token: body.token })).status).toBe(200);
  expect((await login()).status).toBe(200);
  expect((await reset(main, recovery)).status).toBe(401);
  // A user who lost the second factor may also have lost a token, so all tokens are void.
  expect((await ana.call("getNamespaces")).status).toBe(401);
  expect((await entries()).at(-1)).toMatchObject({ operation: "resetMfa", actorId: ana.id });
});

test("hides which accounts exist, and mails only users who can reset", async () => {
  const ben = await app.user("ben");
  for (const name of ["unknown", "ben", ben.email]) {
    const { status, text } = await requestReset(name);
    expect([status, text]).toEqual([200, ""]);
  }
  expect(resetMails()).toEqual([]);
});

test.each(["ana", "unknown"])("limits requests for mails to five in a row for %s", async (name) => {
  for (let count = 0; count < 5; count += 1) expect((await requestReset(name)).status).toBe(200);
  expect((await requestReset(name)).status).toBe(429);
  expect(resetMails().length).toBe(name === "ana" ? 10 : 0);
});

test("limits mails to one user across networks", async () => {
  for (let network = 0; network < 20; network += 1) {
    expect((await requestReset("ana", `198.51.100.${network}`)).status).toBe(200);
  }
  expect(resetMails().length).toBe(10);
  // The user received all mails, and the codes in the mails work.
  const { main, recovery } = mailedCodes();
  expect((await reset(main, recovery)).status).toBe(200);
});

test("accepts mailed codes for a day, including older codes", async () => {
  await requestReset("ana");
  const old = mailedCodes();
  app.pass(3600);
  await requestReset(ana.email);
  const young = mailedCodes();
  expect((await reset(old.main, young.recovery)).status).toBe(401);
  app.pass(23 * 3600 + 60);
  expect((await reset(old.main, old.recovery)).status).toBe(401);
  expect((await reset(young.main, young.recovery)).status).toBe(200);
});

test("restricts mailed codes to one user and address, and stores them as digests", async () => {
  const ben = await app.user("ben");
  await requestReset("ana");
  const { main, recovery } = mailedCodes();
  expect((await reset(main, recovery, ben.id)).status).toBe(401);
  expect((await reset(main, recovery, "0".repeat(24))).status).toBe(404);
  const stored = JSON.stringify(await app.services.db.mfaReset.findMany());
  expect(stored).not.toContain(main);
  expect(stored).not.toContain(recovery);
  const body = { recovery_email: "ana@elsewhere.org", current_password: PASSWORD, code: code(1) };
  expect(await ana.call("updateUser", { body })).toMatchObject({ status: 200, text: "" });
  expect((await reset(main, recovery)).status).toBe(401);
});

test("limits guesses of mailed codes to five", async () => {
  await requestReset("ana");
  const { main, recovery } = mailedCodes();
  const wrong = await Promise.all(Array.from({ length: 7 }, () => reset(main, "AAAABBBBCCCCDDDD")));
  expect(wrong.filter(({ status }) => status === 401)).toHaveLength(5);
  expect((await reset(main, recovery)).status).toBe(429);
});

test("uses the configured address in a mail's link, not the request's host", async () => {
  await app.send("POST", "/api/user/mfa/reset", {
    headers: { "content-type": "application/json", "x-forwarded-host": "evil.example.org" },
    body: JSON.stringify({ identifier: "ana" }),
  });
  await app.deliverMails();
  expect(resetMails()).toHaveLength(2);
  for (const { text } of resetMails()) {
    expect(text).toContain(`\n/reset-mfa?id=${ana.id}\n`);
    expect(text).not.toContain("://");
  }
});
