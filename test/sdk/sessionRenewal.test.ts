import { expect, test } from "vitest";
import { AuthenticationError, publicOperations, tokenCredential } from "../../sdk/index.ts";
import { CODE_OPERATIONS } from "../../sdk/retry.ts";
import { fakeTiming, fakeToken, OTHER, type ScriptedServer, TENANT } from "./scriptedServer.ts";
import { bearer, LOGIN, startSession, TAGS, tokens, user } from "./scriptedSession.ts";

const inAnHour = (now: number) => new Date(now + 3_600_000);

test("renews an expired token once after a 401, and uses the new token for all calls", async () => {
  const { server, clock, client, paths } = await startSession(user);
  const old = fakeToken({ tenant: TENANT, exp: inAnHour(clock.timing.now()), jti: "old" });
  const fresh = fakeToken({ tenant: TENANT, jti: "fresh" });
  let logins = 0;
  server.always(({ path, headers }) => {
    if (path === "/api/login") {
      logins += 1;
      return { body: { token: logins === 1 ? old : fresh } };
    }
    return headers.authorization === bearer(old) && logins > 0 && clock.timing.now() > Date.UTC(2030, 0, 1, 1)
      ? { status: 401 }
      : { body: [] };
  });
  await client.getTags();
  clock.advance(3_700_000);
  await Promise.all([client.getTags(), client.getTags()]);
  expect(logins).toBe(2);
  expect(paths().filter((path) => path === TAGS)).toHaveLength(5);
});

/**
 * Responds to logins with the tokens of `logins`, in order. Accepts only one token in other requests; `accept` changes
 * it.
 */
function rotating(server: ScriptedServer, logins: readonly string[]) {
  let valid: string | undefined = logins[0];
  const remaining = [...logins];
  server.always(({ path, headers }) => {
    if (path === "/api/login") {
      return { body: { token: remaining.shift() } };
    }
    return headers.authorization === bearer(valid ?? "") ? { body: ["x"] } : { status: 401 };
  });
  return {
    accept: (token: string | undefined) => {
      valid = token;
    },
  };
}

/** Tokens of three logins, none of which has expired. */
const [first = "", second = "", third = ""] = ["1", "2", "3"].map((jti) =>
  fakeToken({ tenant: TENANT, jti }),
);

test("renews a token that was revoked before its expiry with one login, for all calls", async () => {
  const { server, client, paths } = await startSession(user);
  const service = rotating(server, [first, second]);
  await client.getTags();
  service.accept(second);
  expect(await Promise.all([client.getTags(), client.getTags()])).toEqual([["x"], ["x"]]);
  expect(await client.getTags()).toEqual(["x"]);
  expect(paths().filter((path) => path === LOGIN)).toHaveLength(2);
});

test("renews a revoked token again after the server had accepted its successor", async () => {
  const { server, client, paths } = await startSession(user);
  const service = rotating(server, [first, second, third]);
  await client.getTags();
  service.accept(second);
  await client.getTags();
  service.accept(third);
  expect(await client.getTags()).toEqual(["x"]);
  expect(paths()).toEqual([LOGIN, TAGS, TAGS, LOGIN, TAGS, TAGS, LOGIN, TAGS]);
});

test("repeats a change once if it was rejected for a revoked token", async () => {
  const { server, client } = await startSession(user);
  const service = rotating(server, [first, second]);
  await client.getTags();
  service.accept(second);
  await client.call("createDeviceTag", { params: { uid: "u" }, body: { tag: "prod" } });
  const sent = server.requests.filter(({ method, path }) => method === "POST" && path !== "/api/login");
  expect(sent.map(({ headers }) => headers.authorization)).toEqual([bearer(first), bearer(second)]);
});

test("sends only two logins to a server that accepts no token", async () => {
  const { server, client, paths } = await startSession(user);
  const service = rotating(server, [first, second]);
  service.accept(undefined);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(client.forTenant(OTHER).getTags()).rejects.toThrow(AuthenticationError);
  const exchange = `GET /api/auth/token/${OTHER}`;
  expect(paths()).toEqual([LOGIN, TAGS, LOGIN, TAGS, TAGS, exchange]);
  // The server now accepts the last token, so the client needs no further login.
  service.accept(second);
  expect(await client.getTags()).toEqual(["x"]);
});

test("does not repeat a login that returns the rejected token again", async () => {
  const { server, client, paths } = await startSession(user);
  rotating(server, [first, first]).accept(undefined);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  expect(paths()).toEqual([LOGIN, TAGS, LOGIN, TAGS, TAGS]);
});

test("does not send a revoked token again after its login is rejected for a changed password", async () => {
  const { server, client, paths } = await startSession(user);
  server.script({ body: { token: first } }, { body: [] }, { status: 401 }, { status: 401 });
  await client.getTags();
  await expect(client.getTags()).rejects.toThrow(/user name or password/);
  await expect(client.getTags()).rejects.toThrow(/user name or password/);
  expect(paths()).toEqual([LOGIN, TAGS, TAGS, LOGIN]);
});

test("exchanges a revoked token of another namespace again", async () => {
  const { server, client, paths } = await startSession(user);
  const exchange = [{ body: { token: tokens[OTHER] } }, { body: { token: tokens[TENANT] } }];
  server.script({ body: { token: first } }, ...exchange, { body: ["before"] }, { status: 401 });
  server.script({ body: { token: second } }, ...exchange, { body: ["after"] });
  const other = client.forTenant(OTHER);
  expect(await other.getTags()).toEqual(["before"]);
  expect(await other.getTags()).toEqual(["after"]);
  expect(paths().filter((path) => path === LOGIN)).toHaveLength(2);
});

test("does not repeat a request with a wrong code, since the 401 does not refer to the token", async () => {
  const { server, client, paths } = await startSession(user);
  server.script({ body: { token: first } }, { status: 401 });
  const body = { code: "123456", secret: "ABCDEFGHIJKLMNOP", recoveryCodes: ["AAAABBBB"] };
  await expect(client.enableMfa({ body })).rejects.toThrow(AuthenticationError);
  expect(paths()).toEqual([LOGIN, "PUT /api/user/mfa/enable"]);
});

test("the list of operations whose 401 can refer to a code matches the contract", () => {
  const common = publicOperations.getTags.errors[401];
  const special = Object.values(publicOperations).filter(
    ({ auth, errors }) => !(auth as readonly string[]).includes("none") && errors[401] !== common,
  );
  expect(special.map(({ id }) => id)).toEqual([...CODE_OPERATIONS]);
});

test("rejects the call if the renewed token is rejected too", async () => {
  const { server, clock, client, paths } = await startSession(user);
  const expired = fakeToken({ exp: new Date(clock.timing.now() - 1000) });
  server.always(({ path }) => (path === "/api/login" ? { body: { token: expired } } : { status: 401 }));
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  expect(paths()).toEqual([LOGIN, TAGS, LOGIN, TAGS]);
});

test("reports the expiry of a configured token and the remedy", async () => {
  const clock = fakeTiming();
  const end = new Date(clock.timing.now() - 60_000);
  const { server, client } = await startSession(tokenCredential(fakeToken({ exp: end })));
  server.always({ status: 401 });
  const error = await client.getTags().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: "AuthenticationError", expiredAt: end });
  expect((error as Error).message).toContain(`expired at ${end.toISOString()} (401). Log in again or set`);
  expect(server.requests).toHaveLength(1);
});

test("keeps the namespace of the first login after another login", async () => {
  const { server, clock, client, paths } = await startSession(user);
  const old = fakeToken({ tenant: TENANT, exp: inAnHour(clock.timing.now()) });
  server.script({ body: { token: old } }, { body: ["before"] }, { status: 401 });
  // Meanwhile a token exchange has changed the user's preferred namespace, so the login returns a token for that
  // namespace.
  server.script({ body: { token: tokens[OTHER] } }, { body: { token: tokens[TENANT] } }, { body: ["after"] });
  await client.getTags();
  clock.advance(3_700_000);
  expect(await client.getTags()).toEqual(["after"]);
  expect(paths()).toEqual([LOGIN, TAGS, TAGS, LOGIN, `GET /api/auth/token/${TENANT}`, TAGS]);
});

test("logs in again before an exchange with an expired token", async () => {
  const { server, clock, client } = await startSession(user);
  const old = fakeToken({ tenant: TENANT, exp: inAnHour(clock.timing.now()) });
  server.script({ body: { token: old } }, { body: [] }, { status: 401 });
  server.script({ body: { token: tokens[TENANT] } }, { body: { token: tokens[OTHER] } });
  server.script({ body: { token: tokens[TENANT] } }, { body: ["x"] });
  await client.getTags();
  clock.advance(3_700_000);
  expect(await client.forTenant(OTHER).getTags()).toEqual(["x"]);
});
