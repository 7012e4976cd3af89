import * as OTPAuth from "otpauth";
import { expect, onTestFinished, test } from "vitest";
import {
  AuthenticationError,
  apiKeyCredential,
  LockoutError,
  NotFoundError,
  PermissionError,
  passwordCredential,
  RateLimitError,
  ServerError,
  TransportError,
  tokenCredential,
} from "../../sdk/index.ts";
import { wireNamespace } from "./scriptedClient.ts";
import { fakeToken, OTHER, type Recorded, TENANT } from "./scriptedServer.ts";
import { bearer, LOGIN, startSession, TAGS, tokens, user } from "./scriptedSession.ts";

test("uses one login for all calls, including calls of another client in the same process", async () => {
  const { server, client, connect, paths } = await startSession(user);
  const token = fakeToken({ tenant: TENANT });
  server.always(({ path }) => (path === "/api/login" ? { body: { token } } : { body: [] }));
  await Promise.all([client.getTags(), client.getTags(), connect().getTags()]);
  expect(paths().sort()).toEqual([TAGS, TAGS, TAGS, LOGIN]);
  const [first, ...others] = server.requests;
  expect(first?.body).toEqual({ username: "ann", password: "hunter2" });
  expect(first?.headers.authorization).toBeUndefined();
  expect(others.map((request) => request.headers.authorization)).toEqual(Array(3).fill(bearer(token)));
});

test("sends no request before the first call, and no login for open operations", async () => {
  const { server, client, paths } = await startSession(user);
  server.always({ body: {} });
  await client.getInfo();
  expect(paths()).toEqual(["GET /info"]);
  expect(server.requests[0]?.headers.authorization).toBeUndefined();
});

test("does not repeat a rejected login, and passes its error to every caller", async () => {
  const { server, client, connect, paths } = await startSession(user);
  server.always({ status: 401, headers: { "x-account-lockout": "0" } });
  const results = await Promise.allSettled([client.getTags(), client.getTags()]);
  expect(results.map((result) => result.status)).toEqual(["rejected", "rejected"]);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(connect().getTags()).rejects.toThrow(/user name or password/);
  expect(paths()).toEqual([LOGIN]);
});

test("throws LockoutError with the end of the lockout, and does not repeat the login", async () => {
  const { server, client, paths } = await startSession(user);
  server.always({ status: 429, headers: { "x-account-lockout": "1900000000", "retry-after": "1" } });
  const error = await client.getTags().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockoutError);
  expect((error as LockoutError).until).toEqual(new Date(1_900_000_000_000));
  expect((error as LockoutError).message).toContain("2030-03-17T17:46:40.000Z");
  await expect(client.getTags()).rejects.toThrow(LockoutError);
  expect(paths()).toEqual([LOGIN]);
});

test("throws RateLimitError for a rate-limited login, and repeats it only with the next call", async () => {
  const { server, client, paths } = await startSession(user);
  server.script(
    { status: 429, headers: { "retry-after": "7" } },
    { body: { token: fakeToken({}) } },
    { body: [] },
  );
  const error = await client.getTags().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RateLimitError);
  expect(paths()).toEqual([LOGIN]);
  expect(await client.getTags()).toEqual([]);
});

test.each(["die", { status: 503, headers: { "retry-after": "1" } }] as const)(
  "repeats a login after %j only with the next call",
  async (step) => {
    const { server, client, paths } = await startSession(user);
    server.script(step, { body: { token: fakeToken({}) } }, { body: [] });
    await expect(client.getTags()).rejects.toThrow(step === "die" ? TransportError : ServerError);
    expect(paths()).toEqual([LOGIN]);
    expect(await client.getTags()).toEqual([]);
  },
);

test("MFA: sends the code with the token of the login", async () => {
  const secret = new OTPAuth.Secret({ size: 20 }).base32;
  const { server, clock, client } = await startSession(
    passwordCredential({ username: "ann", password: "hunter2", totpSecret: secret }),
  );
  const totp = new OTPAuth.TOTP({ secret: OTPAuth.Secret.fromBase32(secret) });
  const expected = totp.generate({ timestamp: clock.timing.now() });
  server.script({ status: 401, headers: { "x-mfa-token": "m-1" } });
  server.script({ body: { token: fakeToken({}) } }, { body: [] });
  await client.getTags();
  expect(server.requests[1]).toMatchObject({
    path: "/api/user/mfa/auth",
    body: { token: "m-1", code: expected },
  });
});

test("MFA: uses each code once, and waits for a new code before the next login", async () => {
  // A fixed TOTP secret, whose next codes are all different. A random secret would generate equal codes in rare cases.
  const totpSecret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
  const { server, clock, client, connect } = await startSession(
    passwordCredential({ username: "ann", password: "a1", totpSecret }),
  );
  const credential = passwordCredential({ username: "ann", password: "a2", totpSecret });
  const third = passwordCredential({ username: "ann", password: "a3", totpSecret });
  server.always(({ path }) => {
    if (path === "/api/login") {
      return { status: 401, headers: { "x-mfa-token": "m" } };
    }
    return path === "/api/tags" ? { body: [] } : { body: { token: fakeToken({}) } };
  });
  await client.getTags();
  await Promise.all([connect({ credential }).getTags(), connect({ credential: third }).getTags()]);
  const codes = server.requests.flatMap(({ body }) => (body as { code?: string } | undefined)?.code ?? []);
  expect(new Set(codes).size).toBe(3);
  expect(Math.max(...clock.slept)).toBeLessThanOrEqual(60_000);
});

test("MFA: reports the variable of a missing TOTP secret, and does not repeat a wrong code", async () => {
  const { server, client } = await startSession(user);
  server.script({ status: 401, headers: { "x-mfa-token": "m" } });
  await expect(client.getTags()).rejects.toThrow(/GATEHOUSE_TOTP_SECRET/);
  const totpSecret = new OTPAuth.Secret({ size: 20 }).base32;
  const other = await startSession(passwordCredential({ username: "ann", password: "pw123", totpSecret }));
  other.server.script({ status: 401, headers: { "x-mfa-token": "m" } }, { status: 401 });
  await expect(other.client.getTags()).rejects.toThrow(/MFA token or code/);
  await expect(other.client.getTags()).rejects.toThrow(/MFA token or code/);
  expect(other.server.requests).toHaveLength(2);
});

/**
 * A scripted server with two namespaces. Logins and token exchanges return tokens; every other request returns the
 * namespace of its token.
 */
function twoNamespaces({ path, headers }: Recorded) {
  if (path === "/api/login") {
    return { body: { token: tokens[TENANT] } };
  }
  if (path.startsWith("/api/auth/token/")) {
    return { body: { token: tokens[path.slice("/api/auth/token/".length)] } };
  }
  const tenant = Object.keys(tokens).find((id) => headers.authorization === bearer(tokens[id] ?? ""));
  return { body: [tenant] };
}

test("forTenant exchanges the token once for another namespace, and never for the same one", async () => {
  const { server, client, paths } = await startSession(user);
  server.always(twoNamespaces);
  const other = client.forTenant(OTHER);
  expect(paths()).toEqual([]);
  expect(await Promise.all([other.getTags(), other.getTags(), client.getTags()])).toEqual([
    [OTHER],
    [OTHER],
    [TENANT],
  ]);
  expect(await client.forTenant(TENANT).getTags()).toEqual([TENANT]);
  expect(client.forTenant(TENANT)).toBe(client);
  expect(other.forTenant(OTHER)).toBe(other);
  expect(await other.forTenant(TENANT).getTags()).toEqual([TENANT]);
  // The client exchanges the token twice. The second exchange restores the namespace that the user preferred before.
  expect(paths().filter((path) => path !== TAGS)).toEqual([
    LOGIN,
    `GET /api/auth/token/${OTHER}`,
    `GET /api/auth/token/${TENANT}`,
  ]);
});

test("ignores a 404 when the client restores the preferred namespace, and reports other errors", async () => {
  const { server, client } = await startSession(user);
  server.script({ body: { token: tokens[TENANT] } }, { body: { token: tokens[OTHER] } }, { status: 404 });
  server.script({ body: ["x"] });
  expect(await client.forTenant(OTHER).getTags()).toEqual(["x"]);

  const second = await startSession(tokenCredential(tokens[TENANT] ?? ""));
  second.server.script({ body: { token: tokens[OTHER] } }, { status: 403, body: { message: "no" } });
  await expect(second.client.forTenant(OTHER).getTags()).rejects.toThrow(PermissionError);
});

test("fails only the calls of the namespace whose exchange fails, and exchanges again for the next call", async () => {
  const { server, client } = await startSession(tokenCredential(tokens[TENANT] ?? ""));
  server.script({ status: 404 }, { body: [] });
  server.script({ body: { token: tokens[OTHER] } }, { body: { token: tokens[TENANT] } }, { body: ["x"] });
  await expect(client.forTenant(OTHER).getTags()).rejects.toThrow(NotFoundError);
  expect(await client.getTags()).toEqual([]);
  expect(await client.forTenant(OTHER).getTags()).toEqual(["x"]);
});

const key = apiKeyCredential("11111111-2222-4333-8444-555555555555");

test("rejects an API key of another namespace before it sends the call", async () => {
  const { server, client, paths } = await startSession(key);
  server.script({ body: [{ tenant_id: TENANT }] });
  await expect(client.forTenant(OTHER).deleteTag({ params: { tag: "prod" } })).rejects.toThrow(
    PermissionError,
  );
  await expect(client.forTenant(OTHER).getTags()).rejects.toThrow(
    /belongs to namespace .*0001, not to .*0002/,
  );
  expect(paths()).toEqual(["GET /api/namespaces?per_page=2"]);
  server.script({ body: ["x"] });
  expect(client.forTenant(TENANT)).toBe(client);
  expect(await client.forTenant(TENANT).getTags()).toEqual(["x"]);
});

test("sends no request for the namespace of an API key without forTenant", async () => {
  const { server, client, paths } = await startSession(key);
  server.script({ body: [] });
  await client.getTags();
  expect(paths()).toEqual([TAGS]);
});

test("determines the namespace of an API key from objects if the key cannot list namespaces", async () => {
  const { server, client } = await startSession(key);
  server.script({ status: 403 }, { body: [{ tenant_id: TENANT }] }, { body: ["x"] });
  expect(await client.forTenant(TENANT).getTags()).toEqual(["x"]);
});

test("determines the namespace of an API key from members if the namespace has no objects", async () => {
  const { server, client } = await startSession(key);
  server.script({ status: 403 }, { body: [] }, { body: [] });
  server.script({ body: wireNamespace }, { body: ["x"] });
  expect(await client.forTenant(TENANT).getTags()).toEqual(["x"]);
  server.script({ body: { ...wireNamespace, tenant_id: OTHER, members: [] } });
  await expect(client.forTenant(OTHER).getTags()).rejects.toThrow(PermissionError);
});

test("rejects an API key that lists several namespaces", async () => {
  const { server, client } = await startSession(key);
  server.script({ body: [{ tenant_id: TENANT }, { tenant_id: OTHER }] }, { body: [] }, { body: [] });
  await expect(client.forTenant(TENANT).getTags()).rejects.toThrow(/Cannot verify that the API key belongs/);
  expect(server.requests).toHaveLength(3);
});

test("returns the identity of a token and of an anonymous client without a request", async () => {
  const { client, server, connect } = await startSession(tokenCredential(tokens[TENANT] ?? ""));
  const userId = "0123456789abcdef01234567";
  expect(await client.identity()).toEqual({ kind: "token", tenant: TENANT, userId });
  expect(await client.forTenant(OTHER).identity()).toEqual({ kind: "token", tenant: OTHER, userId });
  const anonymous = await startSession();
  expect(await anonymous.client.identity()).toEqual({ kind: "anonymous" });
  expect(server.requests).toEqual([]);
  server.always(twoNamespaces);
  expect(await connect({ credential: user }).identity()).toEqual({
    kind: "password",
    tenant: TENANT,
    userId,
  });
});

test("requests the identity of an API key once", async () => {
  const { client, server } = await startSession(key);
  server.script({ body: [{ tenant_id: TENANT }] });
  expect(await client.identity()).toEqual({ kind: "apiKey", tenant: TENANT });
  expect(await client.identity()).toEqual({ kind: "apiKey", tenant: TENANT });
  expect(server.requests).toHaveLength(1);
});

test("without a credential, sends no request that requires a credential", async () => {
  const { client, server } = await startSession();
  await expect(client.getTags()).rejects.toThrow(/A credential is required\. Set GATEHOUSE_API_KEY/);
  expect(server.requests).toEqual([]);
});

test("continues the login for other callers if one caller aborts", async () => {
  const { server, client, paths } = await startSession(user);
  const controller = new AbortController();
  const abandoned = Promise.withResolvers<void>();
  server.script(
    async () => {
      controller.abort();
      await abandoned.promise;
      return { body: { token: tokens[TENANT] } };
    },
    { body: [] },
  );
  const impatient = client.getTags({}, { signal: controller.signal }).finally(() => abandoned.resolve());
  const [aborted, patient] = await Promise.allSettled([impatient, client.getTags()]);
  expect(aborted).toMatchObject({ status: "rejected", reason: { reason: "aborted", outcome: "none" } });
  expect(patient.status).toBe("fulfilled");
  expect(paths()).toEqual([LOGIN, TAGS]);
});

test("starts no login for a caller that has already aborted, so no rejection is unhandled", async () => {
  const { server, client, paths } = await startSession(user);
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", note);
  onTestFinished(() => {
    process.off("unhandledRejection", note);
  });
  server.always(({ path }) => (path === "/info" ? { body: {} } : { status: 401 }));
  const signal = AbortSignal.abort();
  await expect(client.getTags({}, { signal })).rejects.toMatchObject({ reason: "aborted", outcome: "none" });
  await expect(client.identity({ signal })).rejects.toBe(signal.reason);
  // If the aborted calls had sent requests, these would arrive before the requests of the next two calls.
  await client.getInfo();
  await client.getInfo();
  expect(paths()).toEqual(["GET /info", "GET /info"]);
  expect(unhandled).toEqual([]);
});
