import { createSecretKey, generateKeyPairSync, randomUUID } from "node:crypto";
import { decodeJwt, type JWTPayload, SignJWT } from "jose";
import { expect } from "vitest";
import { digestOf } from "../../../../server/secrets/digest.ts";
import type { Credentials } from "../testApp.ts";
import { type MatrixFixture, makeWorkload } from "./fixture.ts";

const HOUR = 3600;
const { privateKey: foreignKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** Invalid tokens that resemble a token of the lab's owner, by their fault. */
async function tokens({ app, lab }: MatrixFixture): Promise<Record<string, string>> {
  const { kid, publicKey, privateKey } = app.services.keys;
  const now = Math.floor(app.services.now().getTime() / 1000);
  const { id, username: name, tenant } = lab.owner;
  const claims = { claims: "user", id, origin: "local", name, tenant, mfa: false, ver: 0 };
  const sign = (
    payload: JWTPayload = {},
    header: { alg?: string; kid?: string | undefined } = {},
    key: Parameters<SignJWT["sign"]>[0] = privateKey,
  ) =>
    new SignJWT({ ...claims, iat: now, nbf: now, exp: now + HOUR, ...payload })
      .setProtectedHeader({ alg: "RS256", kid, ...header } as { alg: string })
      .sign(key);
  const [head = "", body = "", signature = ""] = (await sign()).split(".");
  const none = Buffer.from(JSON.stringify({ alg: "none", kid })).toString("base64url");
  const pem = createSecretKey(Buffer.from(publicKey.export({ type: "spki", format: "pem" })));
  const other = Buffer.from(JSON.stringify({ ...claims, exp: now + HOUR, name: "root" })).toString(
    "base64url",
  );
  return {
    malformed: "garbage",
    "malformed, of three parts": "e30.e30.e30",
    "without a signature": `${none}.${body}.`,
    "changed after it was signed": `${head}.${other}.${signature}`,
    "of another key": await sign({}, {}, foreignKey),
    "HS256 with our public key": await sign({}, { alg: "HS256" }, pem),
    "RS512 with our key": await sign({}, { alg: "RS512" }),
    "PS256 with our key": await sign({}, { alg: "PS256" }),
    expired: await sign({ exp: now - 1 }),
    "without an end": await sign({ exp: undefined }),
    "not valid yet": await sign({ nbf: now + HOUR }),
    "without a key's id": await sign({}, { kid: undefined }),
    "of an unknown key's id": await sign({}, { kid: "another" }),
    "of a void version": await sign({ ver: -1 }),
    "of a version to come": await sign({ ver: 1 }),
    "without a version": await sign({ ver: undefined }),
    "of an unknown kind": await sign({ claims: "robot" }),
    "of no kind": await sign({ claims: undefined }),
    "of a user who does not exist": await sign({ id: "0".repeat(24) }),
    "for a namespace that does not exist": await sign({ tenant: randomUUID() }),
    "without a namespace's claim": await sign({ tenant: undefined }),
  };
}

/** Invalid tokens of sessions of workloads that resemble the session of the lab's administrator. */
async function workloadTokens({ app, lab, elsewhere }: MatrixFixture): Promise<Record<string, string>> {
  const { kid, privateKey } = app.services.keys;
  const { id = "", token = "" } = lab.workloads.get("administrator") ?? {};
  const claims = decodeJwt(token);
  const { iat: now = 0 } = claims;
  const sign = (payload: JWTPayload, key = privateKey) =>
    new SignJWT({ ...claims, ...payload }).setProtectedHeader({ alg: "RS256", kid }).sign(key);
  const deleted = await makeWorkload(app, lab.owner, "deleted", "administrator");
  const changed = await makeWorkload(app, lab.owner, "changed", "administrator");
  const rules = { issuer: "https://issuer.example.org", audience: "gate", claims: { sub: "another" } };
  const body = { name: "changed", role: "administrator", ...rules };
  const { status } = await lab.owner.call("updateTrustedWorkload", { params: { id: changed.id }, body });
  expect(status).toBe(200);
  const deletion = await lab.owner.call("deleteTrustedWorkload", { params: { id: deleted.id } });
  expect(deletion.status).toBe(200);
  return {
    "of a deleted workload": deleted.token,
    "of a workload with other claims now": changed.token,
    expired: await sign({ exp: now - 1 }),
    "for another namespace": await sign({ tenant: elsewhere.tenant }),
    "of another key": await sign({}, foreignKey),
    "without rules": await sign({ rules: undefined }),
    "without a start": await sign({ started: undefined }),
    "without an end": await sign({ exp: undefined }),
    "of a user": await sign({ claims: "user", ver: 0, id }),
  };
}

async function expiredKey({ app, lab }: MatrixFixture): Promise<string> {
  const body = { name: "expired", expires_at: 30, role: "owner" };
  const { status, body: key } = await lab.owner.call("createApiKey", { body });
  expect(status).toBe(200);
  const now = Math.floor(app.services.now().getTime() / 1000);
  await app.services.db.apiKey.update({
    where: { digest: digestOf(key.id) },
    data: { expiresIn: BigInt(now - 1) },
  });
  return key.id;
}

async function deletedKey({ app, lab }: MatrixFixture): Promise<string> {
  const { token } = lab.owner;
  const created = await app.call("createApiKey", { token, body: { name: "deleted", expires_at: 30 } });
  const deleted = await app.call("deleteApiKey", { token, params: { key: "deleted" } });
  expect([created.status, deleted.status]).toEqual([200, 200]);
  return created.body.id;
}

/** Invalid credentials (rules, sections 1, 2 and 3), by the reason why they are invalid. */
export async function refusedCredentials(fixture: MatrixFixture): Promise<Record<string, Credentials>> {
  const { app, lab, removed, pending } = fixture;
  const forLab = (user: typeof removed) => app.tokenOf({ ...user, tenant: lab.tenant });
  const unknown = randomUUID();
  const tokensByName = Object.entries(await tokens(fixture)).map(([name, token]) => [
    `token ${name}`,
    { token },
  ]);
  const workloads = Object.entries(await workloadTokens(fixture)).map(([name, token]) => [
    `workload's token ${name}`,
    { token },
  ]);
  return {
    none: {},
    "empty token": { token: "" },
    ...Object.fromEntries(tokensByName),
    ...Object.fromEntries(workloads),
    "removed member's token": { token: await forLab(removed) },
    "pending member's token": { token: await forLab(pending) },
    "unknown key": { apiKey: unknown },
    "malformed key": { apiKey: "' OR 1=1 --" },
    "a key's digest": { apiKey: digestOf(lab.keys.get("owner") ?? "") },
    "expired key": { apiKey: await expiredKey(fixture) },
    "deleted key": { apiKey: await deletedKey(fixture) },
    "unknown key next to the owner's token": { apiKey: unknown, token: lab.owner.token },
  };
}
