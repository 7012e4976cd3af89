import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  DEFAULT_RETRY,
  pauseAfter,
  publicOperations,
  RateLimitError,
  type RequestErrorDetails,
  ServerError,
  TransportError,
  type TransportFailure,
} from "../../sdk/index.ts";
import { LOGIN_OPERATIONS, mayRepeat, parseRetryAfter, SYSTEM_TIMING } from "../../sdk/retry.ts";
import { connect, failure } from "./scriptedClient.ts";
import { answering, fakeTiming } from "./scriptedServer.ts";

const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const policies = fc.record({
  baseDelay: fc.integer({ min: 0, max: 10_000 }),
  maxDelay: fc.integer({ min: 0, max: 100_000 }),
});
const failed = fc.record({
  attempt: fc.integer({ min: 1, max: 5000 }),
  left: fc.integer({ min: -1000, max: 1e6 }),
});
const longs = fc.integer({ min: 1, max: 1e6 });

test("limits a pause to the doubling base delay, the maximum and the remaining budget", () => {
  fc.assert(
    fc.property(failed, policies, chance, ({ attempt, left }, policy, random) => {
      const pause = pauseAfter({ attempt, left }, policy, () => random);
      expect(pause === undefined).toBe(left <= 0);
      if (pause === undefined) return;
      expect(pause).toBeGreaterThanOrEqual(0);
      expect(pause).toBeLessThanOrEqual(left);
      expect(pause).toBeLessThanOrEqual(policy.maxDelay);
      expect(pause).toBeLessThanOrEqual(policy.baseDelay * 2 ** Math.min(attempt - 1, 60));
    }),
  );
});

test("waits at least for Retry-After, and returns no pause if it exceeds the budget", () => {
  fc.assert(
    fc.property(failed, policies, chance, longs, ({ attempt, left }, policy, random, retryAfter) => {
      const pause = pauseAfter({ attempt, left, retryAfter }, policy, () => random);
      expect(pause === undefined).toBe(left <= 0 || retryAfter > left);
      if (pause === undefined) return;
      expect(pause).toBeGreaterThanOrEqual(retryAfter);
      expect(pause).toBeLessThanOrEqual(Math.min(left, retryAfter + policy.baseDelay));
    }),
  );
});

test("keeps the sum of a call's pauses within the time budget, with any Retry-After", async () => {
  const seconds = fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined });
  const answers = fc.array(seconds, { maxLength: 20 });
  const some = fc.double({ min: 0.05, max: 1, maxExcluded: true, noNaN: true });
  await fc.assert(
    fc.asyncProperty(answers, some, fc.integer({ min: 0, max: 200_000 }), async (all, random, budget) => {
      const clock = fakeTiming();
      const begun = clock.timing.now();
      const starts: number[] = [];
      const dispatcher = answering(() => {
        starts.push(clock.timing.now() - begun);
        const retryAfter = all[starts.length - 1];
        return {
          status: 503,
          ...(retryAfter !== undefined && { headers: { "retry-after": `${retryAfter}` } }),
        };
      });
      const timing = { ...clock.timing, random: () => random };
      const client = connect("http://gatehouse.test", { dispatcher, timing, retry: { budget } });
      const error = await failure(client.getTags(), ServerError);
      expect(clock.slept.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(budget);
      expect(starts.every((start) => start <= budget)).toBe(true);
      for (const [index, ms] of clock.slept.entries()) {
        expect(ms).toBeGreaterThanOrEqual((all[index] ?? 0) * 1000);
      }
      expect(error.attempts).toBe(starts.length);
    }),
    { numRuns: 50 },
  );
});

test("chooses random pauses from the whole range of full jitter", () => {
  const third = { attempt: 3, left: 60_000 };
  expect(pauseAfter(third, DEFAULT_RETRY, () => 0)).toBe(0);
  expect(pauseAfter(third, DEFAULT_RETRY, () => 0.999)).toBeCloseTo(999, 0);
});

test.each([
  ["7", 7000],
  ["0", 0],
  ["Tue, 01 Jan 2030 00:00:30 GMT", 30_000],
  ["Mon, 31 Dec 2029 00:00:00 GMT", 0],
  ["soon", undefined],
  ["", undefined],
  [undefined, undefined],
])("parses Retry-After %j as %j ms", (header, expected) => {
  expect(parseRetryAfter(header, Date.UTC(2030, 0, 1))).toBe(expected);
});

const details: RequestErrorDetails = {
  operation: "x",
  method: "POST",
  path: "/x",
  outcome: "unknown",
  attempts: 1,
};
const transport = (reason: TransportFailure) => new TransportError("x", details, reason, undefined);
const server = (status: number, after?: number) => new ServerError("x", { ...details, status }, after);

test.each([
  ["unreachable", transport("unreachable"), true, true],
  ["interrupted", transport("interrupted"), true, false],
  ["timeout", transport("timeout"), true, false],
  ["untrusted certificate", transport("untrusted"), false, false],
  ["aborted", transport("aborted"), false, false],
  ["429", new RateLimitError("x", { ...details, status: 429 }), true, true],
  ["500", server(500), false, false],
  ["502", server(502), true, false],
  ["503", server(503), true, false],
  ["503 with Retry-After", server(503, 1000), true, false],
  ["504", server(504), true, false],
  ["a bug", new TypeError("x"), false, false],
])("decides whether to repeat a request after %s: %#", (_, error, whenRepeatable, otherwise) => {
  expect(mayRepeat(publicOperations.getDevices, error)).toBe(whenRepeatable);
  expect(mayRepeat(publicOperations.createPublicKey, error)).toBe(otherwise);
  for (const id of LOGIN_OPERATIONS) {
    const isUnsent = error instanceof TransportError && error.reason === "unreachable";
    expect(mayRepeat({ id, repeatable: true }, error)).toBe(isUnsent);
  }
});

test("the clock of a client is the present clock, also if a test replaces it after the client is loaded", () => {
  vi.useFakeTimers({ now: 1_000, toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  expect(SYSTEM_TIMING.now()).toBe(1_000);
});
