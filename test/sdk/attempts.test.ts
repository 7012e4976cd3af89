import { Agent, buildConnector, MockAgent } from "undici";
import { expect, onTestFinished, test } from "vitest";
import {
  type Client,
  NotFoundError,
  PreconditionFailedError,
  passwordCredential,
  RateLimitError,
  RequestError,
  type RequestReport,
  type RetryPolicy,
  type RetryWait,
  ServerError,
  TransportError,
  where,
} from "../../sdk/index.ts";
import { SYSTEM_TIMING } from "../../sdk/retry.ts";
import { connect, createKey, failure, start, wireKey } from "./scriptedClient.ts";
import { fakeTiming, fakeToken, scriptedServer } from "./scriptedServer.ts";

const breaks = ["die", "dieInBody", { status: 502 }, { status: 503 }, { status: 504 }] as const;

test.each(breaks)("repeats a read after %j", async (step) => {
  const { server, client, clock } = await start();
  server.script(step, step, { body: ["a"] });
  expect(await client.getTags()).toEqual(["a"]);
  expect(server.requests).toHaveLength(3);
  expect(clock.slept).toEqual([125, 250]);
});

test.each(breaks)("does not repeat a creation after %j, and reports an unknown outcome", async (step) => {
  const { server, client } = await start();
  server.script(step, { body: wireKey });
  const error = await failure(createKey(client), RequestError);
  expect(error.outcome).toBe("unknown");
  expect(error.message).toContain("may have taken effect");
  expect(server.requests).toHaveLength(1);
});

test("does not repeat a request after a 500", async () => {
  const { server, client } = await start();
  server.script({ status: 500 }, { body: [] });
  expect((await failure(client.getTags(), ServerError)).outcome).toBe("none");
});

test("reports an unknown outcome for a repeated deletion that ends with 404", async () => {
  const { server, client } = await start();
  server.script("die", { status: 404 });
  const error = await failure(client.deleteTag({ params: { tag: "prod" } }), NotFoundError);
  expect(error).toMatchObject({ attempts: 2, outcome: "unknown" });
});

test("reports an unknown outcome for a repeated change that ends with 412", async () => {
  const { server, client } = await start();
  server.script("die", { status: 412 });
  const call = client.deleteTag({ params: { tag: "prod" } }, { ifMatch: '"7"' });
  const error = await failure(call, PreconditionFailedError);
  expect(error).toMatchObject({ attempts: 2, outcome: "unknown" });
});

test("repeats a request for one minute, or for the time budget in the options", async () => {
  const { server, client, clock } = await start();
  const budgetOf = async (retry: Partial<RetryPolicy>) => {
    clock.slept.length = 0;
    await failure(client.getTags({}, { retry }), ServerError);
    return clock.slept.reduce((sum, ms) => sum + ms, 0);
  };
  server.always({ status: 503 });
  expect(await budgetOf({})).toBe(60_000);
  expect(await budgetOf({ budget: 3000 })).toBe(3000);
  const before = server.requests.length;
  expect(await budgetOf({ budget: 0 })).toBe(0);
  expect(await budgetOf({ attempts: 1 })).toBe(0);
  expect(server.requests).toHaveLength(before + 2);
});

test("stops after the number of attempts in the options", async () => {
  const { server, client } = await start({ retry: { attempts: 3 } });
  server.always({ status: 503 });
  expect((await failure(client.getTags(), ServerError)).attempts).toBe(3);
});

test("passes each pause and the remaining budget to onWait", async () => {
  const waits: RetryWait[] = [];
  const { server, client } = await start({ onWait: (wait) => waits.push(wait) });
  server.script({ status: 503 }, { status: 429, headers: { "retry-after": "7" } }, { body: [] });
  await client.getTags();
  expect(waits).toMatchObject([
    { error: { status: 503 }, ms: 125, left: 60_000 },
    { error: { status: 429, retryAfter: 7000 }, ms: 7125, left: 59_875 },
  ]);
});

const retryAfter = { "retry-after": "7" };

test.each([429, 503])(
  "repeats a read after the time in the Retry-After of a response with status %i",
  async (status) => {
    const { server, client, clock } = await start();
    server.script({ status, headers: retryAfter }, { body: ["a"] });
    expect(await client.getTags()).toEqual(["a"]);
    expect(clock.slept).toEqual([7000 + 125]);
  },
);

test("repeats a creation that was rejected with 429, after the time in Retry-After", async () => {
  const { server, client, clock } = await start();
  server.script({ status: 429, headers: retryAfter }, { body: wireKey });
  await createKey(client);
  expect(clock.slept).toEqual([7000 + 125]);
});

test.each([{}, { idempotencyKey: "k1" }])(
  "does not repeat a creation with %j after a 503, since a proxy can send 503 after the creation took effect",
  async (options) => {
    const { server, client } = await start();
    server.script({ status: 503, headers: retryAfter }, { body: wireKey });
    const error = await failure(createKey(client, options), ServerError);
    expect(error).toMatchObject({ outcome: "unknown", retryAfter: 7000 });
    expect(server.requests).toHaveLength(1);
  },
);

test.each(["120", "Tue, 01 Jan 2030 00:02:00 GMT"])(
  "fails at once if Retry-After (%s) exceeds the time budget, and reports the required time",
  async (value) => {
    const { server, client, clock } = await start();
    server.script({ status: 429, headers: { "retry-after": value } });
    const error = await failure(client.getTags(), RateLimitError);
    expect(error.retryAfter).toBe(120_000);
    expect(error.message).toContain("Too many requests (429); retry after 120 s");
    expect(clock.slept).toEqual([]);
  },
);

test("waits exactly for a Retry-After that equals the time budget, without jitter", async () => {
  const { server, client, clock } = await start({ retry: { budget: 7000 } });
  server.script({ status: 503, headers: retryAfter }, { body: ["a"] });
  expect(await client.getTags()).toEqual(["a"]);
  expect(clock.slept).toEqual([7000]);
});

/** A port on which no process listens. The operating system never assigns this port automatically. */
const CLOSED_PORT = 9;

test("repeats a creation after a refused connection and reports no effect", async () => {
  const clock = fakeTiming();
  const client = connect(`http://127.0.0.1:${CLOSED_PORT}`, { timing: clock.timing });
  const error = await failure(createKey(client), TransportError);
  expect(error).toMatchObject({ reason: "unreachable", outcome: "none", attempts: 8 });
  expect(clock.slept).toEqual([125, 250, 500, 1000, 2000, 4000, 2125]);
});

test.each([
  [{ code: "CERT_HAS_EXPIRED" }, "untrusted", "none", 1],
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "untrusted", "none", 1],
  [{ code: "ENOTFOUND", syscall: "getaddrinfo" }, "unreachable", "none", 8],
  [{ code: "UND_ERR_CONNECT_TIMEOUT" }, "unreachable", "none", 8],
  [{ code: "ECONNRESET", syscall: "read" }, "interrupted", "unknown", 1],
])(
  "reports a creation that fails with %j as %s, with the outcome %s after %i attempts",
  async (fields, ...expected) => {
    const dispatcher = new MockAgent();
    dispatcher.disableNetConnect();
    const pool = dispatcher.get("https://gatehouse.test");
    const intercepted = pool.intercept({ path: "/api/sshkeys/public-keys", method: "POST" });
    intercepted.replyWithError(Object.assign(new Error("x"), fields)).persist();
    const client = connect("https://gatehouse.test", { dispatcher, timing: fakeTiming().timing });
    const { reason, outcome, attempts } = await failure(createKey(client), TransportError);
    expect([reason, outcome, attempts]).toEqual(expected);
    await dispatcher.close();
  },
);

test("reports a host name as unreachable if all its addresses refuse the connection", async () => {
  const client = connect(`http://localhost:${CLOSED_PORT}`, { timing: fakeTiming().timing });
  expect(await failure(createKey(client), TransportError)).toMatchObject({ reason: "unreachable" });
});

test("reports a slow response as a timeout, with an unknown outcome for a creation", async () => {
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
});

test("ends a call without a response at its deadline", async () => {
  // The timeout for headers exceeds the timeout of the test, so only the deadline can end the call in time.
  const { server, client } = await start({ headersTimeout: 600_000, retry: { deadline: 150 } });
  server.always("hang");
  expect((await failure(client.getTags(), TransportError)).reason).toBe("timeout");
});

test("ends a call when the caller's signal aborts, before or during the request", async () => {
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

test("ends a pause between attempts when the caller's signal aborts", async () => {
  const controller = new AbortController();
  const server = await scriptedServer();
  const client = connect(server.url, {
    retry: { baseDelay: 600_000, maxDelay: 600_000, budget: 6_000_000 },
    timing: { ...SYSTEM_TIMING, random: () => 0.5 },
    // The client calls this hook after each attempt. The abort then happens during the pause before the next attempt.
    onRequest: () => setImmediate(() => controller.abort()),
  });
  server.always({ status: 503 });
  const error = await failure(client.getTags({}, { signal: controller.signal }), TransportError);
  expect(error).toMatchObject({ reason: "aborted", attempts: 1 });
  expect(server.requests).toHaveLength(1);
});

test("stops repeating requests when stopWaiting aborts, and sends later requests once", async () => {
  const controller = new AbortController();
  const server = await scriptedServer();
  const client = connect(server.url, {
    retry: { baseDelay: 600_000, maxDelay: 600_000 },
    timing: { ...SYSTEM_TIMING, random: () => 0.05 },
    stopWaiting: controller.signal,
    onWait: () => controller.abort(),
  });
  server.always({ status: 503 });
  expect(await failure(client.getTags(), ServerError)).toMatchObject({ status: 503, attempts: 1 });
  await failure(client.getTags(), ServerError);
  expect(server.requests).toHaveLength(2);
  server.always({ body: ["a"] });
  expect(await client.getTags()).toEqual(["a"]);
});

test("waits for a service that restarts, for reads, creations and logins", async () => {
  const server = await scriptedServer();
  server.always(({ path }) => {
    if (path === "/api/login") return { body: { token: fakeToken({}) } };
    return { body: path === "/api/tags" ? ["a"] : wireKey };
  });
  let port = CLOSED_PORT;
  const connector = buildConnector({});
  const dispatcher = new Agent({
    connect: (options, done) => connector({ ...options, port: String(port) }, done),
  });
  onTestFinished(() => dispatcher.close());
  const waiting = Array.from({ length: 3 }, () => Promise.withResolvers<RetryWait>());
  const [reader, creator, user] = waiting.map(({ resolve }, index) =>
    connect("http://127.0.0.1", {
      dispatcher,
      timing: { ...SYSTEM_TIMING, random: () => 0.1 },
      onWait: resolve,
      ...(index === 2 && { credential: passwordCredential({ username: "ann", password: "hunter2" }) }),
    }),
  ) as [Client, Client, Client];
  const calls = Promise.all([reader.getTags(), createKey(creator), user.getTags()]);
  const waits = await Promise.all(waiting.map(({ promise }) => promise));
  for (const { error } of waits) expect(error).toMatchObject({ reason: "unreachable" });
  expect(server.requests).toEqual([]);
  port = Number(new URL(server.url).port);
  expect(await calls).toMatchObject([["a"], { fingerprint: "aa" }, ["a"]]);
  expect(server.requests).toHaveLength(4);
});

test("passes every attempt to onRequest", async () => {
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
