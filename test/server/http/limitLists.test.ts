import { Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { operations } from "@gatehouse-access/sdk/contract";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { limitLists } from "../../../server/http/limits/limitLists.ts";
import { answerErrors } from "../../../server/http/listener/errorHandler.ts";
import { makeMetrics } from "../../../server/metrics.ts";
import type { Services } from "../../../server/services.ts";

const LIMITED = ["getDevices", "getDevice", "listAnnouncements"] as const;

const metrics = makeMetrics();
let app: FastifyInstance;
/** Number of requests that the route has handled. */
let handled: number;
let logged: { readonly msg: string; readonly [field: string]: unknown }[];

/** Creates an app in which each response blocks the event loop for 50 ms. Request headers identify the caller. */
beforeEach(async () => {
  logged = [];
  handled = 0;
  const stream = new Writable({
    write: (line, _encoding, done) => {
      logged.push(JSON.parse(String(line)));
      done();
    },
  });
  app = Fastify({ logger: { level: "info", stream }, disableRequestLogging: true });
  answerErrors(app);
  app.decorateRequest("identity", null);
  app.addHook("onRequest", async (request) => {
    const { tenant = "", user, closed } = request.headers as Record<string, string>;
    if (closed !== undefined) Object.assign(request.socket, { destroyed: true });
    if (user !== undefined) Object.assign(request, { identity: { tenant, userId: user } });
    else if (tenant !== "") Object.assign(request, { identity: { tenant } });
  });
  limitLists(app, { settings: { listBacklog: 1 }, metrics } as unknown as Services);
  for (const id of LIMITED) {
    app.get(`/${id}`, { config: { operation: operations[id] } }, async () => {
      handled += 1;
      const end = performance.now() + 50;
      while (performance.now() < end);
      return [];
    });
  }
  await app.ready();
});
afterEach(() => app.close());

/**
 * Sends requests in the same iteration of the event loop. Returns the statuses of the responses, in the order of the
 * requests.
 */
async function statuses(count: number, url: string, headers: Record<string, string>): Promise<number[]> {
  const answers = await Promise.all(
    Array.from({ length: count }, async () => {
      await setImmediate();
      return app.inject({ method: "GET", url, headers });
    }),
  );
  for (const { statusCode, headers } of answers) {
    if (statusCode === 503) expect(headers["retry-after"]).toBe("1");
  }
  return answers.map(({ statusCode }) => statusCode);
}

const TOO_MANY = [200, 200, 503, 503];

test("rejects only lists, and only for the namespace that has too many of them", async () => {
  const [a, b, ...others] = await Promise.all([
    statuses(4, "/getDevices", { tenant: "a" }),
    statuses(1, "/getDevices", { tenant: "b" }),
    statuses(4, "/getDevice", { tenant: "a" }),
    statuses(4, "/listAnnouncements", {}),
  ]);
  expect([a, b]).toEqual([TOO_MANY, [200]]);
  expect(new Set(others.flat())).toEqual(new Set([200]));
});

test("limits the user's lists if there is no namespace", async () => {
  const [one, other] = await Promise.all([
    statuses(4, "/getDevices", { user: "ann" }),
    statuses(2, "/getDevices", { user: "ben" }),
  ]);
  expect([one, other]).toEqual([TOO_MANY, [200, 200]]);
});

test("skips a waiting list if its client has disconnected", async () => {
  const waited = [statuses(1, "/getDevices", { tenant: "a" }), statuses(1, "/getDevices", { tenant: "b" })];
  void statuses(1, "/getDevices", { tenant: "c", closed: "yes" });
  waited.push(statuses(1, "/getDevices", { tenant: "d" }));
  expect(await Promise.all(waited)).toEqual([[200], [200], [200]]);
  expect(handled).toBe(3);
});

test("counts rejected lists, and logs when rejections start and when they have stopped for a while", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const before = (await metrics.refusedLists.get()).values[0]?.value ?? 0;
  await statuses(4, "/getDevices", { tenant: "a" });
  vi.advanceTimersByTime(9_000);
  await statuses(4, "/getDevices", { tenant: "a" });
  vi.advanceTimersByTime(9_000);
  const owner = "a";
  expect(logged).toEqual([
    expect.objectContaining({
      msg: "refusing lists: too many list requests of the same owner are waiting",
      owner,
    }),
  ]);
  expect((await metrics.refusedLists.get()).values[0]?.value).toBe(before + 4);
  vi.advanceTimersByTime(1_000);
  expect(logged.slice(1)).toEqual([
    expect.objectContaining({ msg: "accepting lists again", owner, refused: 4 }),
  ]);
});
