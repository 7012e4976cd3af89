import { generateKeyPairSync } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, SignJWT } from "jose";
import { expect, test } from "vitest";
import { recallToken } from "../../../server/http/access/tokens.ts";
import { withLab } from "./lab.ts";
import { enroll } from "./testApp.ts";

const { app, ana } = withLab();

const list = async () => (await ana.call("getDevices")).status;
const recalled = () =>
  recallToken(app.services.keys.publicKey, ana.token, Math.floor(app.services.now().getTime() / 1000));

test("a signature is checked once; a token ends in time all the same", async () => {
  expect(await list()).toBe(200);
  expect(recalled()).toMatchObject({ claims: "user", id: ana.id, tenant: ana.tenant });
  app.pass(72 * 60 * 60 + 1);
  expect(recalled()).toBeUndefined();
  expect(await list()).toBe(401);
});

test("the membership is looked at with every request", async () => {
  expect(await list()).toBe(200);
  await app.services.db.member.deleteMany({ where: { userId: ana.id } });
  expect(await list()).toBe(401);
});

test("what another key signed is refused, also when it was accepted before", async () => {
  expect(await list()).toBe(200);
  Object.assign(app.services.keys, generateKeyPairSync("rsa", { modulusLength: 2048 }));
  expect(await list()).toBe(401);
});

test("a token that was refused is not kept, nor one that differs in its signature only", async () => {
  expect(await list()).toBe(200);
  const [head, claims, signature = ""] = ana.token.split(".");
  const forged = [head, claims, [...signature].reverse().join("")].join(".");
  for (let again = 0; again < 2; again += 1) {
    expect((await app.call("getDevices", { token: forged })).status).toBe(401);
  }
});

test("a database that cannot be asked for the key is an error of the service, not of the token", async () => {
  Object.assign(app.services.keys, {
    find: async () => {
      throw new Error("the database does not answer");
    },
  });
  expect(await list()).toBe(500);
});

test("tokens of users and of devices are, to the byte, what a library of JSON Web Tokens makes of their claims", async () => {
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
    ...{ claims: "device", uid: device.uid, tenant: ana.tenant, proven: false, enrolled: now },
    ...{ jti, iat: now, nbf: now, exp: now },
  });
});
