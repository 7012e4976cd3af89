import { expect, test } from "vitest";
import { AuthenticationError, publicOperations, tokenCredential } from "../../sdk/index.ts";
import { CODE_OPERATIONS } from "../../sdk/retry.ts";
import { fakeTiming, fakeToken, OTHER, type ScriptedServer, TENANT } from "./scriptedServer.ts";
import { bearer, LOGIN, startSession, TAGS, tokens, user } from "./scriptedSession.ts";

const inAnHour = (now: number) => new Date(now + 3_600_000);

test("a token whose time is over is renewed once after a 401, for all who use it", async () => {
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

/** Takes one token only, which `set` changes, and gives the tokens of `logins` in turn. */
function rotating(server: ScriptedServer, logins: readonly string[]) {
  let valid: string | undefined = logins[0];
  const given = [...logins];
  server.always(({ path, headers }) => {
    if (path === "/api/login") {
      return { body: { token: given.shift() } };
    }
    return headers.authorization === bearer(valid ?? "") ? { body: ["x"] } : { status: 401 };
  });
  return {
    take: (token: string | undefined) => {
      valid = token;
    },
  };
}

/** Tokens of three logins, whose time is not over. */
const [first = "", second = "", third = ""] = ["1", "2", "3"].map((jti) =>
  fakeToken({ tenant: TENANT, jti }),
);

test("a token that became void before its time is renewed by one login, for all who use it", async () => {
  const { server, client, paths } = await startSession(user);
  const service = rotating(server, [first, second]);
  await client.getTags();
  service.take(second);
  expect(await Promise.all([client.getTags(), client.getTags()])).toEqual([["x"], ["x"]]);
  expect(await client.getTags()).toEqual(["x"]);
  expect(paths().filter((path) => path === LOGIN)).toHaveLength(2);
});

test("a token that became void is renewed again when its successor had been taken", async () => {
  const { server, client, paths } = await startSession(user);
  const service = rotating(server, [first, second, third]);
  await client.getTags();
  service.take(second);
  await client.getTags();
  service.take(third);
  expect(await client.getTags()).toEqual(["x"]);
  expect(paths()).toEqual([LOGIN, TAGS, TAGS, LOGIN, TAGS, TAGS, LOGIN, TAGS]);
});

test("a change that was refused because of a void token is sent once more", async () => {
  const { server, client } = await startSession(user);
  const service = rotating(server, [first, second]);
  await client.getTags();
  service.take(second);
  await client.call("createDeviceTag", { params: { uid: "u" }, body: { tag: "prod" } });
  const sent = server.requests.filter(({ method, path }) => method === "POST" && path !== "/api/login");
  expect(sent.map(({ headers }) => headers.authorization)).toEqual([bearer(first), bearer(second)]);
});

test("a server that takes none of the tokens is sent two logins, whatever is called", async () => {
  const { server, client, paths } = await startSession(user);
  const service = rotating(server, [first, second]);
  service.take(undefined);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(client.forTenant(OTHER).getTags()).rejects.toThrow(AuthenticationError);
  const exchange = `GET /api/auth/token/${OTHER}`;
  expect(paths()).toEqual([LOGIN, TAGS, LOGIN, TAGS, TAGS, exchange]);
  // It begins to take the last one: nothing but time was needed.
  service.take(second);
  expect(await client.getTags()).toEqual(["x"]);
});

test("a login that gives the refused token again is not repeated", async () => {
  const { server, client, paths } = await startSession(user);
  rotating(server, [first, first]).take(undefined);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  expect(paths()).toEqual([LOGIN, TAGS, LOGIN, TAGS, TAGS]);
});

test("a void token whose login is refused, because the password changed, is not sent again", async () => {
  const { server, client, paths } = await startSession(user);
  server.script({ body: { token: first } }, { body: [] }, { status: 401 }, { status: 401 });
  await client.getTags();
  await expect(client.getTags()).rejects.toThrow(/user name or password/);
  await expect(client.getTags()).rejects.toThrow(/user name or password/);
  expect(paths()).toEqual([LOGIN, TAGS, TAGS, LOGIN]);
});

test("the token of another namespace that became void is exchanged for again", async () => {
  const { server, client, paths } = await startSession(user);
  const exchange = [{ body: { token: tokens[OTHER] } }, { body: { token: tokens[TENANT] } }];
  server.script({ body: { token: first } }, ...exchange, { body: ["before"] }, { status: 401 });
  server.script({ body: { token: second } }, ...exchange, { body: ["after"] });
  const other = client.forTenant(OTHER);
  expect(await other.getTags()).toEqual(["before"]);
  expect(await other.getTags()).toEqual(["after"]);
  expect(paths().filter((path) => path === LOGIN)).toHaveLength(2);
});

test("a wrong code is not tried twice: its 401 is not about the token", async () => {
  const { server, client, paths } = await startSession(user);
  server.script({ body: { token: first } }, { status: 401 });
  const body = { code: "123456", secret: "ABCDEFGHIJKLMNOP", recoveryCodes: ["AAAABBBB"] };
  await expect(client.enableMfa({ body })).rejects.toThrow(AuthenticationError);
  expect(paths()).toEqual([LOGIN, "PUT /api/user/mfa/enable"]);
});

test("the operations whose 401 may be about a code are those that say so in the contract", () => {
  const common = publicOperations.getTags.errors[401];
  const special = Object.values(publicOperations).filter(
    ({ auth, errors }) => !(auth as readonly string[]).includes("none") && errors[401] !== common,
  );
  expect(special.map(({ id }) => id)).toEqual([...CODE_OPERATIONS]);
});

test("a renewed token that is refused as well is an error", async () => {
  const { server, clock, client, paths } = await startSession(user);
  const over = fakeToken({ exp: new Date(clock.timing.now() - 1000) });
  server.always(({ path }) => (path === "/api/login" ? { body: { token: over } } : { status: 401 }));
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  expect(paths()).toEqual([LOGIN, TAGS, LOGIN, TAGS]);
});

test("a given token that is over says when it ended, and what to do", async () => {
  const clock = fakeTiming();
  const end = new Date(clock.timing.now() - 60_000);
  const { server, client } = await startSession(tokenCredential(fakeToken({ exp: end })));
  server.always({ status: 401 });
  const error = await client.getTags().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: "AuthenticationError", expiredAt: end });
  expect((error as Error).message).toContain(`expired at ${end.toISOString()} (401); log in again or set`);
  expect(server.requests).toHaveLength(1);
});

test("after another login the client stays in the namespace it began with", async () => {
  const { server, clock, client, paths } = await startSession(user);
  const old = fakeToken({ tenant: TENANT, exp: inAnHour(clock.timing.now()) });
  server.script({ body: { token: old } }, { body: ["before"] }, { status: 401 });
  // The exchange in between made the other namespace the preferred one.
  server.script({ body: { token: tokens[OTHER] } }, { body: { token: tokens[TENANT] } }, { body: ["after"] });
  await client.getTags();
  clock.advance(3_700_000);
  expect(await client.getTags()).toEqual(["after"]);
  expect(paths()).toEqual([LOGIN, TAGS, TAGS, LOGIN, `GET /api/auth/token/${TENANT}`, TAGS]);
});

test("an exchange with a token that is over logs in again first", async () => {
  const { server, clock, client } = await startSession(user);
  const old = fakeToken({ tenant: TENANT, exp: inAnHour(clock.timing.now()) });
  server.script({ body: { token: old } }, { body: [] }, { status: 401 });
  server.script({ body: { token: tokens[TENANT] } }, { body: { token: tokens[OTHER] } });
  server.script({ body: { token: tokens[TENANT] } }, { body: ["x"] });
  await client.getTags();
  clock.advance(3_700_000);
  expect(await client.forTenant(OTHER).getTags()).toEqual(["x"]);
});
