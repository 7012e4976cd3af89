import { TOTP } from "otpauth";
import { beforeEach, expect, test } from "vitest";
import { statusesOf } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { PASSWORD } from "../http/testApp.ts";

let secret: string;

const { app, ana } = withAppAndUser();
beforeEach(async () => {
  const { body } = await ana.call("generateMfa");
  secret = body.secret;
});

const code = (steps = 0) =>
  new TOTP({ secret }).generate({ timestamp: app.services.now().getTime() + steps * 30_000 });
const setRecovery = () => ana.call("updateUser", { body: { recovery_email: "ana@recovery.org" } });
const enable = (more: object = {}) =>
  ana.call("enableMfa", {
    body: { code: code(), secret, recovery_codes: ["AAAABBBBCCCCDDDD", "EEEEFFFFGGGGHHHH"], ...more },
  });
const login = () => app.call("login", { body: { username: "ana", password: PASSWORD } });
const second = (token: string, given: string) => app.call("authMfa", { body: { token, code: given } });
const challenge = async () => (await login()).headers.get("x-mfa-token") ?? "";

async function enabled() {
  expect((await setRecovery()).status).toBe(200);
  expect((await enable()).status).toBe(200);
}

/** Returns a code that is wrong in the current time step and in the neighboring time steps. */
const wrongCode = () => {
  const right = [-1, 0, 1].map((steps) => code(steps));
  return ["000000", "111111", "222222", "333333"].find((given) => !right.includes(given)) ?? "";
};

test("generates new credentials each time, and enables nothing", async () => {
  const { body } = await ana.call("generateMfa");
  expect(body.secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(body.secret).not.toBe(secret);
  expect(body.recovery_codes).toHaveLength(6);
  for (const item of body.recovery_codes) expect(item).toMatch(/^[A-Z2-7]{16}$/);
  expect(body.link).toMatch(/^otpauth:\/\/totp\//);
  expect(new URL(body.link).searchParams.get("secret")).toBe(body.secret);
  expect((await login()).status).toBe(200);
});

test("requires a recovery e-mail, the right code, and disabled MFA", async () => {
  expect((await enable()).status).toBe(400);
  await setRecovery();
  expect((await enable({ code: wrongCode() })).status).toBe(401);
  expect((await enable({ code: "12345" })).status).toBe(400);
  expect((await enable()).status).toBe(200);
  expect((await enable()).status).toBe(400);
});

test("requires two steps for a login", async () => {
  await enabled();
  const first = await login();
  expect(first.status).toBe(401);
  const token = first.headers.get("x-mfa-token") ?? "";
  expect(token).toMatch(/^[0-9a-f-]{36}$/);
  const { status, body } = await second(token, code());
  expect(status).toBe(200);
  expect(body).toMatchObject({ user: "ana", mfa: true, tenant: ana.tenant });
  // The token from the first login step can be used only once.
  app.pass(60);
  expect((await second(token, code())).status).toBe(401);
});

test("accepts the older path", async () => {
  await enabled();
  const token = await challenge();
  const { status } = await app.send("POST", "/api/mfa/auth", {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token, code: code() }),
  });
  expect(status).toBe(200);
});

test("accepts codes of the neighboring steps only", async () => {
  app.stopClock();
  await enabled();
  expect((await second(await challenge(), code(-2))).status).toBe(401);
  expect((await second(await challenge(), code(2))).status).toBe(401);
  expect((await second(await challenge(), code(-1))).status).toBe(200);
  expect((await second(await challenge(), code(1))).status).toBe(200);
});

test("accepts a code once, and no older code afterwards", async () => {
  await enabled();
  const given = code();
  expect((await second(await challenge(), given)).status).toBe(200);
  expect((await second(await challenge(), given)).status).toBe(401);
  expect((await second(await challenge(), code(-1))).status).toBe(401);
  app.pass(30);
  expect((await second(await challenge(), code())).status).toBe(200);
});

test("accepts one of several concurrent logins with one code", async () => {
  await enabled();
  const [one, two] = [await challenge(), await challenge()];
  const given = code();
  const answers = await Promise.all([second(one, given), second(two, given), second(one, given)]);
  expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
});

test("counts no wrong code for concurrent requests with a right code", { tags: ["long"] }, async () => {
  await enabled();
  for (let round = 0; round < 4; round += 1) {
    const tokens = await Promise.all(Array.from({ length: 5 }, challenge));
    const given = code();
    expect(await statusesOf(tokens.map((token) => second(token, given)))).toEqual([200, 401, 401, 401, 401]);
    expect(await app.services.db.loginFailure.findMany({ where: { attempts: { gt: 0 } } })).toEqual([]);
    app.pass(90);
  }
});

test("rejects a used code without counting it as a guess", async () => {
  await enabled();
  const given = code();
  expect((await second(await challenge(), given)).status).toBe(200);
  for (let tries = 0; tries < 6; tries += 1) {
    expect((await second(await challenge(), given)).status).toBe(401);
  }
  app.pass(60);
  expect((await second(await challenge(), code())).status).toBe(200);
});

test("ignores wrong and used codes with times in the future", async () => {
  await enabled();
  const month = 30 * 24 * 60 * 60;
  app.pass(month);
  expect((await second(await challenge(), code())).status).toBe(200);
  const token = await challenge();
  for (let tries = 0; tries < 5; tries += 1) expect((await second(token, wrongCode())).status).toBe(401);
  expect((await login()).status).toBe(429);
  app.pass(-month);
  expect((await second(await challenge(), code())).status).toBe(200);
});

test("accepts a token once in concurrent requests with two valid codes", async () => {
  await enabled();
  const token = await challenge();
  const answers = await Promise.all([second(token, code(-1)), second(token, code())]);
  expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
});

test("expires the token after 30 minutes", async () => {
  app.stopClock();
  await enabled();
  const [early, late] = [await challenge(), await challenge()];
  app.pass(30 * 60 - 1);
  expect((await second(early, code())).status).toBe(200);
  app.pass(2);
  expect((await second(late, code())).status).toBe(401);
  expect((await second("c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10", code())).status).toBe(401);
});

test("limits guesses: after five in a row, neither the code nor a new login works for 30 minutes", async () => {
  await enabled();
  const token = await challenge();
  for (let tries = 0; tries < 5; tries += 1) expect((await second(token, wrongCode())).status).toBe(401);
  const locked = await second(token, code());
  expect(locked.status).toBe(429);
  const end = Number(locked.headers.get("x-account-lockout")) * 1000;
  expect(end - app.services.now().getTime()).toBeGreaterThan(29 * 60_000);
  expect((await login()).status).toBe(429);
  app.pass(29 * 60);
  expect((await login()).status).toBe(429);
  app.pass(61);
  expect((await second(await challenge(), code())).status).toBe(200);
});

test("allows no more guesses with logins that were prepared earlier", async () => {
  await enabled();
  const stock: string[] = [];
  for (let minute = 0; minute < 6; minute += 1) {
    stock.push(await challenge());
    app.pass(4 * 60);
  }
  for (const token of stock.slice(0, 5)) expect((await second(token, wrongCode())).status).toBe(401);
  expect((await second(stock[5] ?? "", code())).status).toBe(429);
});

test("allows ten waiting logins of a user; a further login ends the oldest login", async () => {
  await enabled();
  const tokens: string[] = [];
  for (let count = 0; count < 11; count += 1) {
    tokens.push(await challenge());
    app.pass(1);
  }
  expect((await second(tokens[0] ?? "", code())).status).toBe(401);
  expect((await second(tokens[1] ?? "", code())).status).toBe(200);
});

test("resets the guesses with the right code", async () => {
  await enabled();
  const other = await challenge();
  for (let tries = 0; tries < 4; tries += 1) expect((await second(other, wrongCode())).status).toBe(401);
  expect((await second(await challenge(), code())).status).toBe(200);
  app.pass(60);
  for (let tries = 0; tries < 4; tries += 1) expect((await second(other, wrongCode())).status).toBe(401);
  expect((await second(other, code())).status).toBe(200);
});

test("encrypts the secret in the database", async () => {
  await enabled();
  const { mfaSecret } = await app.services.db.user.findUniqueOrThrow({ where: { id: ana.id } });
  expect(mfaSecret).not.toContain(secret);
});

test("stores tokens and recovery codes only as digests", async () => {
  await enabled();
  const token = await challenge();
  const stored = JSON.stringify([
    await app.services.db.mfaChallenge.findMany(),
    await app.services.db.recoveryCode.findMany(),
  ]);
  expect(stored).not.toContain(token);
  expect(stored).not.toContain("AAAABBBBCCCCDDDD");
  expect(await app.services.db.recoveryCode.count()).toBe(2);
});
