import { generateKeyPairSync } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, SignJWT } from "jose";
import { expect, test } from "vitest";
import { recallToken } from "../../../server/http/access/tokens.ts";
import { withAppAndUser } from "./appOfTest.ts";
import { enroll } from "./testApp.ts";

const { app, ana } = withAppAndUser();

const list = async () => (await ana.call("getDevices")).status;
const recalled = () =>
  recallToken(app.services.keys.publicKey, ana.token, Math.floor(app.services.now().getTime() / 1000));

test("verifies a signature once, and rejects the token after its expiry", async () => {
  expect(await list()).toBe(200);
  expect(recalled()).toMatchObject({ claims: "user", id: ana.id, tenant: ana.tenant });
  app.pass(72 * 60 * 60 + 1);
  expect(recalled()).toBeUndefined();
  expect(await list()).toBe(401);
});

test("checks the membership with every request", async () => {
  expect(await list()).toBe(200);
  await app.services.db.member.deleteMany({ where: { userId: ana.id } });
  expect(await list()).toBe(401);
});

test("rejects a token of another key, even if it was accepted before", async () => {
  expect(await list()).toBe(200);
  Object.assign(app.services.keys, generateKeyPairSync("rsa", { modulusLength: 2048 }));
  expect(await list()).toBe(401);
});

test("caches neither a rejected token nor a token that differs only in its signature", async () => {
  expect(await list()).toBe(200);
  const [head, claims, signature = ""] = ana.token.split(".");
  const forged = [head, claims, [...signature].reverse().join("")].join(".");
  for (let again = 0; again < 2; again += 1) {
    expect((await app.call("getDevices", { token: forged })).status).toBe(401);
  }
});

test("returns 500, not 401, if the database cannot return the key", async () => {
  Object.assign(app.services.keys, {
    find: async () => {
      throw new Error("the database does not answer");
    },
  });
  expect(await list()).toBe(500);
});

test("tokens of users and devices are byte for byte those of a JSON Web Token library for the same claims", async () => {
  const { kid, privateKey } = app.services.keys;
  const header = { alg: "RS256", typ: "JWT", kid };
  const device = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  for (const token of [ana.token, device.token]) {
    expect(decodeProtectedHeader(token)).toEqual(header);
    const claims = decodeJwt(token);
    expect(await new SignJWT(claims).setProtectedHeader(header).sign(privateKey)).toBe(token);
  }
  const now = expect.any(Number);
  const jti = expect.stringMatching(/^[0-9a-f-]{36}$/);
  expect(decodeJwt(device.token)).toEqual({
    claims: "device",
    uid: device.uid,
    tenant: ana.tenant,
    proven: false,
    enrolled: now,
    jti,
    iat: now,
    nbf: now,
    exp: now,
  });
});
