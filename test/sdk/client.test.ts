import { createServer } from "node:net";
import { MockAgent } from "undici";
import { expect, onTestFinished, test } from "vitest";
import {
  apiKeyCredential,
  type Client,
  type ClientOptions,
  ConfigurationError,
  ConflictError,
  createClient,
  isNotFound,
  NotFoundError,
  PermissionError,
  ProtocolError,
  RateLimitError,
  RequestError,
  type RequestReport,
  ServerError,
  TransportError,
  ValidationError,
  where,
} from "../../sdk/dist/index.js";
import { fakeTiming, type ScriptedServer, type Step, scriptedServer, TENANT } from "./scriptedServer.ts";

const KEY = "11111111-2222-4333-8444-555555555555";

function connect(url: string, options: Partial<ClientOptions> = {}): Client {
  const client = createClient({ url, credential: apiKeyCredential(KEY), ...options });
  onTestFinished(() => client.close());
  return client;
}

async function start(options: Partial<ClientOptions> = {}) {
  const server = await scriptedServer();
  const clock = fakeTiming();
  return { server, clock, client: connect(server.url, { timing: clock.timing, ...options }) };
}

async function failure<E extends Error>(
  promise: Promise<unknown>,
  kind: abstract new (...args: never[]) => E,
): Promise<E> {
  const error = await promise.then(
    () => new Error("it succeeded"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(kind);
  return error as E;
}

const wireKey = { fingerprint: "aa", tenant_id: TENANT, created_at: "x", filter: { tags: ["prod"] } };
const createKey = (client: Client, options = {}) =>
  client.createPublicKey(
    { body: { data: "AAAA", name: "n", username: "root", filter: { tags: ["prod"] } } },
    options,
  );

test("keys are camelCase inside and snake_case on the wire, both ways", async () => {
  const { server, client } = await start();
  server.script({ body: { tenant_id: TENANT, settings: { session_record: true }, device_count: 3 } });
  const namespace = await client.editNamespace({
    params: { tenant: TENANT },
    body: { settings: { sessionRecord: true, connectionAnnouncement: "a_b" } },
  });
  expect(namespace).toEqual({ tenantId: TENANT, settings: { sessionRecord: true }, deviceCount: 3 });
  expect(server.requests[0]).toMatchObject({
    method: "PUT",
    path: `/api/namespaces/${TENANT}`,
    body: { settings: { session_record: true, connection_announcement: "a_b" } },
    headers: { "x-api-key": KEY, "content-type": "application/json", "user-agent": "gatehouse-sdk" },
  });
});

test("what the contract does not know survives as it is", async () => {
  const { server, client } = await start();
  server.script({
    body: { tenant_id: TENANT, devices_accepted_count: 2, settings: { ssh_access_mode: "x" } },
  });
  expect(await client.getNamespace({ params: { tenant: TENANT } })).toEqual({
    tenantId: TENANT,
    devices_accepted_count: 2,
    settings: { ssh_access_mode: "x" },
  });
});

test("query, filter and path parameters are escaped", async () => {
  const { server, client } = await start();
  server.always({ body: [] });
  const filter = where("name").eq("ü+/=");
  await client.getDevices({ query: { filter, perPage: 5, sortBy: "name" } });
  const { searchParams } = new URL(server.requests[0]?.path ?? "", server.url);
  expect(Object.fromEntries(searchParams)).toEqual({
    filter: filter.toString(),
    per_page: "5",
    sort_by: "name",
  });
  await client.deleteTag({ params: { tag: "a/b?c" } });
  expect(server.requests[1]?.path).toBe("/api/tags/a%2Fb%3Fc");
});

test.each(["", ".", ".."])("path parameter %j never becomes another path", async (tag) => {
  const { server, client } = await start();
  await failure(client.deleteTag({ params: { tag } }), ConfigurationError);
  expect(server.requests).toEqual([]);
});

test("a path in the URL is kept; user agent, headers and idempotency key are sent", async () => {
  const server = await scriptedServer();
  const client = connect(`${server.url}/base/`, { userAgent: "mine/1" });
  server.script({ body: wireKey });
  await createKey(client, {
    idempotencyKey: "k1",
    headers: { "X-Forwarded-Host": "h", "X-API-Key": "not this" },
  });
  expect(server.requests[0]).toMatchObject({ path: "/base/api/sshkeys/public-keys" });
  expect(server.requests[0]?.headers).toMatchObject({
    "idempotency-key": "k1",
    "x-forwarded-host": "h",
    "user-agent": "mine/1",
    "x-api-key": KEY,
  });
});

test("call gives status and headers", async () => {
  const { server, client } = await start();
  server.script({ headers: { "X-Total-Count": "7" }, body: ["a"] });
  const result = await client.call("getTags");
  expect(result).toMatchObject({ status: 200, headers: { "x-total-count": "7" }, body: ["a"] });
});

test.each([
  [400, ValidationError],
  [415, ValidationError],
  [422, ValidationError],
  [402, PermissionError],
  [403, PermissionError],
  [404, NotFoundError],
  [409, ConflictError],
  [406, RequestError],
  [500, ServerError],
  [302, ProtocolError],
])("%i is a %o with all that helps", async (status, kind) => {
  const { server, client } = await start();
  server.script({ status, headers: { "X-Request-ID": "r-1" }, body: { message: "because" } });
  const error = await failure(client.deleteTag({ params: { tag: "prod" } }), kind as typeof RequestError);
  expect(error).toMatchObject({
    operation: "deleteTag",
    method: "DELETE",
    path: "/api/tags/prod",
    status,
    requestId: "r-1",
    attempts: 1,
    outcome: status === 500 ? "unknown" : "none",
  });
  expect(error.message).toContain("r-1");
  expect(error.message).toContain(`${status}`);
  expect(isNotFound(error)).toBe(status === 404);
  expect(server.requests).toHaveLength(1);
});

test("field names of 400 and 409 are kept, from either family of servers", async () => {
  const { server, client } = await start();
  server.script({ status: 409, body: ["email", "username"] });
  server.script({ status: 400, body: { message: "invalid entity", fields: { name: "required" } } });
  const conflict = await failure(client.updateUser({ body: { email: "a@b.c" } }), ConflictError);
  expect(conflict.fields).toEqual(["email", "username"]);
  const invalid = await failure(client.updateUser({ body: { name: "" } }), ValidationError);
  expect(invalid).toMatchObject({ fields: ["name"], serverMessage: "invalid entity" });
});

test("an API key where a user is needed: the 403 says so", async () => {
  const { server, client } = await start();
  server.script({ status: 403 });
  const error = await failure(client.createApiKey({ body: { name: "abc", expiresAt: 30 } }), PermissionError);
  expect(error.message).toContain("user's credential");
});

test("control characters of a server's message do not reach a terminal, nor do pages of HTML", async () => {
  const { server, client } = await start();
  server.script({ status: 404, body: { message: `a\u001b[31mb${"x".repeat(2000)}` } });
  server.script({ status: 404, body: "<html>no</html>" });
  const error = await failure(client.deleteTag({ params: { tag: "prod" } }), NotFoundError);
  expect(error.serverMessage).toMatch(/^a \[31mbx+…$/);
  expect(error.serverMessage?.length).toBeLessThan(600);
  const html = await failure(client.deleteTag({ params: { tag: "prod" } }), NotFoundError);
  expect(html.serverMessage).toBeUndefined();
});

test.each([
  ["HTML", "<html>", { "content-type": "text/html" }, "text/html"],
  ["nothing", "", {}, "empty"],
  ["a list", [], {}, "array where object"],
  ["null", "null", {}, "null where object"],
])("%s where an object is expected is a ProtocolError", async (_, body, headers, words) => {
  const { server, client } = await start();
  server.script({ body, headers });
  const error = await failure(client.getNamespace({ params: { tenant: TENANT } }), ProtocolError);
  expect(error.message).toContain(words);
  expect(error.outcome).toBe("none");
});

test("a creation whose answer can not be read has been done, and is not repeated", async () => {
  const { server, client } = await start();
  server.script({ body: "<html>" });
  expect((await failure(createKey(client), ProtocolError)).outcome).toBe("done");
  expect(server.requests).toHaveLength(1);
});

test("a redirect names where it leads, without what may be secret there", async () => {
  const { server, client } = await start();
  server.script({ status: 301, headers: { location: "https://u:pw@other.example/x?token=abc" } });
  const error = await failure(client.getTags(), ProtocolError);
  expect(error.message).toContain("https://other.example;");
  expect(error.message).not.toMatch(/pw|abc/);
});

test("leaving a namespace may be answered with nothing", async () => {
  const { server, client } = await start();
  server.script({});
  expect(await client.leaveNamespace({ params: { tenant: TENANT } })).toBeUndefined();
});

test("an answer larger than allowed is refused", async () => {
  const { server, client } = await start({ maxResponseSize: 1000 });
  server.script({ body: ["x".repeat(2000)] });
  const error = await failure(client.getTags(), ProtocolError);
  expect(error.message).toContain("larger");
});

const breaks = ["die", "dieInBody", { status: 502 }, { status: 503 }, { status: 504 }] as const;

test.each(breaks)("a read is repeated after %j", async (step) => {
  const { server, client, clock } = await start();
  server.script(step, step, { body: ["a"] });
  expect(await client.getTags()).toEqual(["a"]);
  expect(server.requests).toHaveLength(3);
  expect(clock.slept).toEqual([125, 250]);
});

test.each(breaks)("a creation is not repeated after %j, and its outcome is unknown", async (step) => {
  const { server, client } = await start();
  server.script(step, { body: wireKey });
  const error = await failure(createKey(client), RequestError);
  expect(error.outcome).toBe("unknown");
  expect(error.message).toContain("may have taken effect");
  expect(server.requests).toHaveLength(1);
});

test("a 500 is not repeated", async () => {
  const { server, client } = await start();
  server.script({ status: 500 }, { body: [] });
  expect((await failure(client.getTags(), ServerError)).outcome).toBe("none");
});

test("a repeated deletion that finds nothing may have been the one that deleted", async () => {
  const { server, client } = await start();
  server.script("die", { status: 404 });
  const error = await failure(client.deleteTag({ params: { tag: "prod" } }), NotFoundError);
  expect(error).toMatchObject({ attempts: 2, outcome: "unknown" });
});

test("attempts are limited", async () => {
  const { server, client } = await start({ retry: { attempts: 3 } });
  server.always({ status: 503 });
  expect((await failure(client.getTags(), ServerError)).attempts).toBe(3);
  await failure(client.getTags({}, { retry: { attempts: 1 } }), ServerError);
  expect(server.requests).toHaveLength(4);
});

test.each([429, 503])("%i with Retry-After is repeated after that time, also a creation", async (status) => {
  const { server, client, clock } = await start();
  server.script({ status, headers: { "retry-after": "7" } }, { body: wireKey });
  await createKey(client);
  expect(clock.slept).toEqual([7000 + 125]);
});

test("a Retry-After beyond the deadline fails at once", async () => {
  const { server, client, clock } = await start();
  server.script({ status: 429, headers: { "retry-after": "3600" } });
  const error = await failure(client.getTags(), RateLimitError);
  expect(error.retryAfter).toBe(3_600_000);
  expect(clock.slept).toEqual([]);
});

/** A port on which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("a refused connection is tried again even for a creation, and has had no effect", async () => {
  const clock = fakeTiming();
  const client = connect(`http://127.0.0.1:${await closedPort()}`, { timing: clock.timing });
  const error = await failure(createKey(client), TransportError);
  expect(error).toMatchObject({ reason: "unreachable", outcome: "none", attempts: 4 });
  expect(clock.slept).toEqual([125, 250, 500]);
});

test.each([
  [{ code: "CERT_HAS_EXPIRED" }, "untrusted", "none", 1],
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "untrusted", "none", 1],
  [{ code: "ENOTFOUND", syscall: "getaddrinfo" }, "unreachable", "none", 4],
  [{ code: "UND_ERR_CONNECT_TIMEOUT" }, "unreachable", "none", 4],
  [{ code: "ECONNRESET", syscall: "read" }, "interrupted", "unknown", 1],
])("a creation that fails with %j is %s, its outcome %s after %i attempts", async (fields, ...expected) => {
  const dispatcher = new MockAgent();
  dispatcher.disableNetConnect();
  const pool = dispatcher.get("https://gatehouse.test");
  const intercepted = pool.intercept({ path: "/api/sshkeys/public-keys", method: "POST" });
  intercepted.replyWithError(Object.assign(new Error("x"), fields)).persist();
  const client = connect("https://gatehouse.test", { dispatcher, timing: fakeTiming().timing });
  const { reason, outcome, attempts } = await failure(createKey(client), TransportError);
  expect([reason, outcome, attempts]).toEqual(expected);
  await dispatcher.close();
});

test("a name that resolves to several closed addresses is unreachable", async () => {
  const client = connect(`http://localhost:${await closedPort()}`, { timing: fakeTiming().timing });
  expect(await failure(createKey(client), TransportError)).toMatchObject({ reason: "unreachable" });
});

test("a slow answer is a time-out, and unclear for a creation", async () => {
  const { server, client } = await start({ headersTimeout: 100, retry: { attempts: 1 } });
  server.always("hang");
  expect(await failure(client.getTags(), TransportError)).toMatchObject({
    reason: "timeout",
    outcome: "none",
  });
  expect(await failure(createKey(client), TransportError)).toMatchObject({
    reason: "timeout",
    outcome: "unknown",
  });
}, 10_000);

test("the deadline ends a call that hangs", async () => {
  const { server, client } = await start({ retry: { deadline: 150 } });
  server.always("hang");
  const started = performance.now();
  expect((await failure(client.getTags(), TransportError)).reason).toBe("timeout");
  expect(performance.now() - started).toBeLessThan(2000);
});

test("the caller's signal ends a call, before and during", async () => {
  const { server, client } = await start();
  const before = await failure(client.getTags({}, { signal: AbortSignal.abort() }), TransportError);
  expect(before).toMatchObject({ reason: "aborted", outcome: "none" });
  expect(server.requests).toHaveLength(0);
  const controller = new AbortController();
  server.script(() => {
    controller.abort();
    return "hang";
  });
  const during = await failure(createKey(client, { signal: controller.signal }), TransportError);
  expect(during).toMatchObject({ reason: "aborted", outcome: "unknown" });
});

test("the caller's signal ends a pause between attempts", async () => {
  const controller = new AbortController();
  const server = await scriptedServer();
  const client = connect(server.url, { retry: { baseDelay: 60_000, maxDelay: 60_000, deadline: 600_000 } });
  server.always(() => {
    setTimeout(() => controller.abort(), 50);
    return { status: 503 };
  });
  const error = await failure(client.getTags({}, { signal: controller.signal }), TransportError);
  expect(error.reason).toBe("aborted");
}, 5000);

test("the hook sees every attempt", async () => {
  const reports: RequestReport[] = [];
  const { server, client } = await start({ onRequest: (report) => reports.push(report) });
  server.script("die", { body: [] });
  await client.getDevices({ query: { filter: where("name").eq("x") } });
  expect(reports).toEqual([
    { operation: "getDevices", method: "GET", path: "/api/devices", attempt: 1, ms: expect.any(Number) },
    {
      operation: "getDevices",
      method: "GET",
      path: "/api/devices",
      attempt: 2,
      ms: expect.any(Number),
      status: 200,
    },
  ]);
});

/** Serves `names` as pages, at most `cap` a page. */
function pages(server: ScriptedServer, names: string[], more: { cap: number; total: boolean }) {
  server.always(({ path }): Step => {
    const query = new URL(path, server.url).searchParams;
    const perPage = Math.min(Number(query.get("per_page")), more.cap);
    const from = (Number(query.get("page")) - 1) * perPage;
    return {
      ...(more.total && { headers: { "x-total-count": String(names.length) } }),
      body: names.slice(from, from + perPage).map((name) => ({ name, created_at: "t" })),
    };
  });
}

test.each([
  [0, 1],
  [99, 1],
  [100, 1],
  [101, 2],
  [250, 3],
])("iterate reads %i items in %i requests", async (count, requests) => {
  const { server, client } = await start();
  const names = Array.from({ length: count }, (_, index) => `n${index}`);
  pages(server, names, { cap: 100, total: true });
  const seen: string[] = [];
  for await (const device of client.iterate("getDevices")) {
    seen.push(device.name);
    expect(device.createdAt).toBe("t");
  }
  expect(seen).toEqual(names);
  expect(server.requests).toHaveLength(requests);
  expect(server.requests[0]?.path).toBe("/api/devices?page=1&per_page=100&sort_by=name&order_by=asc");
});

test("iterate without a total stops at a page that is not full, and keeps the caller's sorting", async () => {
  const { server, client } = await start();
  pages(server, ["a", "b", "c"], { cap: 100, total: false });
  const query = { perPage: 2, sortBy: "created_at" };
  const seen: string[] = [];
  for await (const device of client.iterate("getDevices", { query })) {
    seen.push(device.name);
  }
  expect(seen).toEqual(["a", "b", "c"]);
  expect(server.requests.map((request) => request.path)).toEqual([
    "/api/devices?page=1&per_page=2&sort_by=created_at",
    "/api/devices?page=2&per_page=2&sort_by=created_at",
  ]);
});

test("iterate asks for the next page only when it is needed", async () => {
  const { server, client } = await start();
  pages(server, ["a", "b", "c"], { cap: 1, total: true });
  for await (const key of client.iterate("getPublicKeys", { query: { perPage: 1 } })) {
    expect(key.name).toBe("a");
    break;
  }
  expect(server.requests).toHaveLength(1);
});

test.each([
  "not a url",
  "ftp://host",
  "https://user:hunter2@host",
  "https://host/?token=hunter2",
  "https://host/#hunter2",
])("the URL %s is refused without repeating it", (url) => {
  expect(() => createClient({ url })).toThrow(ConfigurationError);
  expect(() => createClient({ url })).not.toThrow(/hunter2/);
});
