import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  AuthenticationError,
  ConfigurationError,
  TransportError,
  workloadCredential,
} from "../../sdk/index.ts";
import { testFolder } from "../support/folder.ts";
import { failure } from "./scriptedClient.ts";
import { fakeToken, type Recorded, type Step, scriptedServer, TENANT } from "./scriptedServer.ts";
import { bearer, startSession, TAGS } from "./scriptedSession.ts";

const EXCHANGE = "POST /api/auth/workload";
const RENEW = "POST /api/auth/workload/renew";

const ofToken = (token: string) => workloadCredential({ tenant: TENANT, source: { kind: "token", token } });

/** Creates the response to an exchange: a session of 15 minutes that can be renewed for an hour. */
function session(now: number, jti: string, renewableMinutes = 60) {
  const time = (minutes: number) => new Date(now + minutes * 60_000);
  return {
    token: fakeToken({ tenant: TENANT, jti, iat: time(0), exp: time(15) }),
    expires_at: time(15).toISOString(),
    renewable_until: time(renewableMinutes).toISOString(),
    tenant: TENANT,
    role: "observer",
    workload: { id: "0123456789abcdef01234567", name: "ci" },
    actor: "job",
  };
}

/** Returns the nonce of each exchange. */
const nonces = (requests: readonly Recorded[]) =>
  requests.flatMap(({ body }) => (body as { nonce?: string } | undefined)?.nonce ?? []);

test.each(["die", { status: 503, headers: { "retry-after": "1" } }, { status: 429 }] as const)(
  "repeats an exchange after %j with the same nonce",
  async (step) => {
    const { server, clock, client, paths } = await startSession(ofToken("oidc-token-1"));
    server.script(step, { body: session(clock.timing.now(), "a") }, { body: ["x"] });
    expect(await client.getTags()).toEqual(["x"]);
    expect(paths()).toEqual([EXCHANGE, EXCHANGE, TAGS]);
    const [first, second] = server.requests;
    expect(first?.body).toEqual({
      tenant: TENANT,
      token: "oidc-token-1",
      nonce: expect.stringMatching(/^[\w-]{32}$/),
    });
    expect(second?.body).toEqual(first?.body);
  },
);

test("uses the same nonce again after all attempts of an exchange failed", async () => {
  const { server, clock, client } = await startSession(ofToken("oidc-token-2"), { retry: { budget: 0 } });
  server.script("die", { body: session(clock.timing.now(), "a") }, { body: [] });
  await expect(client.getTags()).rejects.toThrow(TransportError);
  expect(await client.getTags()).toEqual([]);
  expect(new Set(nonces(server.requests)).size).toBe(1);
  const other = await startSession(ofToken("oidc-token-2"));
  other.server.script({ body: session(clock.timing.now(), "a") }, { body: [] });
  await other.client.getTags();
  expect(nonces(other.server.requests)).not.toEqual(nonces(server.requests));
});

test("renews a session once for concurrent calls when less than a third of its life remains", async () => {
  const { server, clock, client, connect, paths } = await startSession(ofToken("oidc-token-3"));
  server.always(({ method, path }) => {
    if (`${method} ${path}` === EXCHANGE) return { body: session(clock.timing.now(), "first") };
    if (`${method} ${path}` === RENEW) return { body: session(clock.timing.now(), "second") };
    return { body: [] };
  });
  await client.getTags();
  clock.advance(9 * 60_000);
  await client.getTags();
  expect(paths()).toEqual([EXCHANGE, TAGS, TAGS]);
  clock.advance(2 * 60_000);
  await Promise.all([client.getTags(), connect().getTags(), client.sessionToken()]);
  expect(paths().slice(3)).toEqual([RENEW, TAGS, TAGS]);
});

test("depends on the life of a session, and not on the clock of the server", async () => {
  const { server, clock, client, paths } = await startSession(ofToken("oidc-token-4"));
  server.always(({ path }) => ({
    body: path === "/api/tags" ? [] : session(clock.timing.now() - 3_600_000, "late"),
  }));
  await client.getTags();
  await client.getTags();
  expect(paths()).toEqual([EXCHANGE, TAGS, TAGS]);
});

test("exchanges the token again after the server refused the renewal, or a session before its end", async () => {
  const { server, clock, client, paths } = await startSession(ofToken("oidc-token-5"));
  let current = "first";
  server.always(({ method, path, headers }): Step => {
    if (`${method} ${path}` === RENEW) return { status: 401 };
    if (`${method} ${path}` === EXCHANGE) return { body: session(clock.timing.now(), current) };
    const { token } = session(clock.timing.now(), current);
    return headers.authorization === bearer(token) ? { body: [] } : { status: 401 };
  });
  await client.getTags();
  clock.advance(11 * 60_000);
  current = "second";
  await client.getTags();
  expect(paths()).toEqual([EXCHANGE, TAGS, RENEW, EXCHANGE, TAGS]);
  current = "third";
  await client.getTags();
  expect(paths().slice(5)).toEqual([TAGS, EXCHANGE, TAGS]);
});

test("stops if the server refuses each new session", async () => {
  const { server, clock, client, paths } = await startSession(ofToken("oidc-token-6"));
  let count = 0;
  server.always(({ path }): Step => {
    count += 1;
    return path === "/api/tags" ? { status: 401 } : { body: session(clock.timing.now(), String(count)) };
  });
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  await expect(client.getTags()).rejects.toThrow(AuthenticationError);
  expect(paths()).toEqual([EXCHANGE, TAGS, EXCHANGE, TAGS, TAGS]);
});

test.each([401, 404, 405])(
  "reports a server without the operation, which responds with %s",
  async (status) => {
    const { server, client, paths } = await startSession(ofToken(`oidc-token-of-${status}`));
    server.always({ status });
    const error = await failure(client.getTags(), AuthenticationError);
    expect(error.message).toMatch(/does not support workload identity/);
    expect(await failure(client.getDevices(), AuthenticationError)).toBe(error);
    expect(paths()).toEqual([EXCHANGE]);
  },
);

test("rejects a session of another namespace", async () => {
  const { server, clock, client } = await startSession(ofToken("oidc-token-7"));
  server.always({ body: { ...session(clock.timing.now(), "a"), tenant: "other" } });
  await expect(client.getTags()).rejects.toThrow("the server returned a token of other");
});

test("reads the file of a token for each exchange", async () => {
  const file = join(testFolder(), "token");
  writeFileSync(file, "first-of-file\n");
  const source = { kind: "file", path: file } as const;
  const { server, clock, client } = await startSession(workloadCredential({ tenant: TENANT, source }));
  server.always(({ path }) => ({ body: path === "/api/tags" ? [] : session(clock.timing.now(), "a", 15) }));
  await client.getTags();
  writeFileSync(file, "second-of-file\n");
  clock.advance(16 * 60_000);
  await client.getTags();
  const sent = server.requests.flatMap(({ body }) => (body as { token?: string } | undefined)?.token ?? []);
  expect(sent).toEqual(["first-of-file", "second-of-file"]);
  writeFileSync(file, "");
  clock.advance(16 * 60_000);
  await expect(client.getTags()).rejects.toThrow(`GATEHOUSE_OIDC_TOKEN_FILE: The file ${file} is empty`);
});

/** Starts a server that stands for GitHub, and a session of a job. */
async function startJob(more: { readonly audience?: string; readonly retry?: { budget: number } } = {}) {
  const github = await scriptedServer();
  const requestToken = `request-token-${github.url}`;
  const source = {
    kind: "github" as const,
    url: `${github.url}/token?api-version=2.0`,
    requestToken,
    ...(more.audience !== undefined && { audience: more.audience }),
  };
  const options = more.retry ? { retry: more.retry } : {};
  const service = await startSession(workloadCredential({ tenant: TENANT, source }), options);
  service.server.always(({ path }) => ({
    body: path === "/api/tags" ? [] : session(service.clock.timing.now(), "a"),
  }));
  return { github, requestToken, ...service };
}

test("requests a token of GitHub for the address of the service, and repeats a failed request", async () => {
  const { github, requestToken, server, client } = await startJob();
  github.script("die", { status: 503 }, { body: { count: 1, value: "github-token" } });
  await client.getTags();
  expect(github.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(
    Array(3).fill(`GET /token?api-version=2.0&audience=${encodeURIComponent(server.url)}`),
  );
  expect(github.requests[0]?.headers).toMatchObject({ authorization: bearer(requestToken) });
  expect(server.requests[0]?.body).toMatchObject({ token: "github-token" });
  expect(server.requests[0]?.headers).not.toHaveProperty("authorization");
});

test("requests a token of GitHub for the audience in the settings", async () => {
  const { github, client } = await startJob({ audience: "my audience" });
  github.script({ body: { value: "github-token" } });
  await client.getTags();
  expect(github.requests[0]?.path).toBe("/token?api-version=2.0&audience=my+audience");
});

test.each([
  [
    { status: 403, body: { message: "no" } },
    /GitHub issued no token for the job: .*\(403\): no\. Check that the job/,
  ],
  [{ status: 404 }, /GitHub issued no token for the job/],
  [{ status: 302, headers: { location: "http://127.0.0.1:9/" } }, /unexpected status 302, a redirect to/],
  [{ body: { value: "" } }, /The response of GitHub contains no token/],
  [{ body: { value: "x".repeat(70_000) } }, /larger than 65536 bytes/],
] satisfies [Step, RegExp][])(
  "reports the response of GitHub without a token: %j",
  async (step, expected) => {
    const { github, requestToken, server, client } = await startJob();
    github.always(step);
    const error = await failure(client.getTags(), Error);
    expect(error.message).toMatch(expected);
    expect(error.message).not.toContain(requestToken);
    expect(error).not.toMatchObject({ name: expect.stringMatching(/PermissionError|NotFoundError/) });
    expect(server.requests).toEqual([]);
  },
);

test("never sends the secret of a job without TLS", async () => {
  const source = { kind: "github", url: "http://example.org/token", requestToken: "secret" } as const;
  const { client } = await startSession(workloadCredential({ tenant: TENANT, source }));
  const error = await failure(client.getTags(), ConfigurationError);
  expect(error.message).toBe("ACTIONS_ID_TOKEN_REQUEST_URL must begin with https://");
});
