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

test("a repeated change that finds another revision may have made it itself", async () => {
  const { server, client } = await start();
  server.script("die", { status: 412 });
  const call = client.deleteTag({ params: { tag: "prod" } }, { ifMatch: '"7"' });
  const error = await failure(call, PreconditionFailedError);
  expect(error).toMatchObject({ attempts: 2, outcome: "unknown" });
});

test("a request is repeated for a minute, or as long as the options say", async () => {
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

test("attempts can be limited as well", async () => {
  const { server, client } = await start({ retry: { attempts: 3 } });
  server.always({ status: 503 });
  expect((await failure(client.getTags(), ServerError)).attempts).toBe(3);
});

test("the hook is told of each pause, and of what is left", async () => {
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

test.each([429, 503])("a read is repeated after the Retry-After of a %i", async (status) => {
  const { server, client, clock } = await start();
  server.script({ status, headers: retryAfter }, { body: ["a"] });
  expect(await client.getTags()).toEqual(["a"]);
  expect(clock.slept).toEqual([7000 + 125]);
});

test("a creation that was refused with 429 is repeated after the Retry-After", async () => {
  const { server, client, clock } = await start();
  server.script({ status: 429, headers: retryAfter }, { body: wireKey });
  await createKey(client);
  expect(clock.slept).toEqual([7000 + 125]);
});

test.each([{}, { idempotencyKey: "k1" }])(
  "a creation with %j is not repeated after a 503, which a proxy may give for what was done",
  async (options) => {
    const { server, client } = await start();
    server.script({ status: 503, headers: retryAfter }, { body: wireKey });
    const error = await failure(createKey(client, options), ServerError);
    expect(error).toMatchObject({ outcome: "unknown", retryAfter: 7000 });
    expect(server.requests).toHaveLength(1);
  },
);

test.each(["120", "Tue, 01 Jan 2030 00:02:00 GMT"])(
  "a Retry-After (%s) beyond the budget fails at once, and the message says how long it is",
  async (value) => {
    const { server, client, clock } = await start();
    server.script({ status: 429, headers: { "retry-after": value } });
    const error = await failure(client.getTags(), RateLimitError);
    expect(error.retryAfter).toBe(120_000);
    expect(error.message).toContain("too many requests (429); retry after 120 s");
    expect(clock.slept).toEqual([]);
  },
);

test("a Retry-After that just fits into the budget is waited for, without jitter", async () => {
  const { server, client, clock } = await start({ retry: { budget: 7000 } });
  server.script({ status: 503, headers: retryAfter }, { body: ["a"] });
  expect(await client.getTags()).toEqual(["a"]);
  expect(clock.slept).toEqual([7000]);
});

/** Nothing listens there, and no system gives it to those who ask for any port. */
const CLOSED_PORT = 9;

test("a refused connection is tried again even for a creation, and has had no effect", async () => {
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
  const client = connect(`http://localhost:${CLOSED_PORT}`, { timing: fakeTiming().timing });
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
});

test("the deadline ends a call that hangs", async () => {
  // Nothing else would end it before the test's own time is over.
  const { server, client } = await start({ headersTimeout: 600_000, retry: { deadline: 150 } });
  server.always("hang");
  expect((await failure(client.getTags(), TransportError)).reason).toBe("timeout");
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
  const client = connect(server.url, {
    retry: { baseDelay: 600_000, maxDelay: 600_000, budget: 6_000_000 },
    timing: { ...SYSTEM_TIMING, random: () => 0.5 },
    // The attempt has ended; by the next turn of the event loop the pause has begun.
    onRequest: () => setImmediate(() => controller.abort()),
  });
  server.always({ status: 503 });
  const error = await failure(client.getTags({}, { signal: controller.signal }), TransportError);
  expect(error).toMatchObject({ reason: "aborted", attempts: 1 });
  expect(server.requests).toHaveLength(1);
});

test("a client that is told to stop waiting repeats nothing, and leaves requests in flight alone", async () => {
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

test("a service that restarts is waited for, by creations and logins too", async () => {
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
  const [reader, maker, user] = waiting.map(({ resolve }, index) =>
    connect("http://127.0.0.1", {
      dispatcher,
      timing: { ...SYSTEM_TIMING, random: () => 0.1 },
      onWait: resolve,
      ...(index === 2 && { credential: passwordCredential({ username: "ann", password: "hunter2" }) }),
    }),
  ) as [Client, Client, Client];
  const calls = Promise.all([reader.getTags(), createKey(maker), user.getTags()]);
  const waits = await Promise.all(waiting.map(({ promise }) => promise));
  for (const { error } of waits) expect(error).toMatchObject({ reason: "unreachable" });
  expect(server.requests).toEqual([]);
  port = Number(new URL(server.url).port);
  expect(await calls).toMatchObject([["a"], { fingerprint: "aa" }, ["a"]]);
  expect(server.requests).toHaveLength(4);
});

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
