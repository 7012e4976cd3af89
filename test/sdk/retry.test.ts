import fc from "fast-check";
import { expect, test } from "vitest";
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
import { LOGIN_OPERATIONS, mayRepeat, parseRetryAfter } from "../../sdk/retry.ts";

const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const policies = fc.record({
  baseDelay: fc.integer({ min: 0, max: 10_000 }),
  maxDelay: fc.integer({ min: 0, max: 100_000 }),
});

test("a pause lies between nothing and both the doubling base and the maximum", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5000 }), policies, chance, (attempt, policy, random) => {
      const pause = pauseAfter(attempt, policy, () => random);
      expect(pause).toBeGreaterThanOrEqual(0);
      expect(pause).toBeLessThanOrEqual(policy.maxDelay);
      expect(pause).toBeLessThanOrEqual(policy.baseDelay * 2 ** Math.min(attempt - 1, 60));
    }),
  );
});

test("a pause is never shorter than the server asked for, and not much longer", () => {
  fc.assert(
    fc.property(policies, chance, fc.integer({ min: 1, max: 1e7 }), (policy, random, asked) => {
      const pause = pauseAfter(1, policy, () => random, asked);
      expect(pause).toBeGreaterThanOrEqual(asked);
      expect(pause).toBeLessThanOrEqual(asked + policy.baseDelay);
    }),
  );
});

test("full jitter uses the whole range", () => {
  expect(pauseAfter(3, DEFAULT_RETRY, () => 0)).toBe(0);
  expect(pauseAfter(3, DEFAULT_RETRY, () => 0.999)).toBeCloseTo(999, 0);
});

test.each([
  ["7", 7000],
  ["0", 0],
  ["Tue, 01 Jan 2030 00:00:30 GMT", 30_000],
  ["Mon, 31 Dec 2029 00:00:00 GMT", 0],
  ["soon", undefined],
  ["", undefined],
  [undefined, undefined],
])("Retry-After %j is %j ms", (header, expected) => {
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
])("%s: repeated when repeatable %#", (_, error, whenRepeatable, otherwise) => {
  expect(mayRepeat(publicOperations.getDevices, error)).toBe(whenRepeatable);
  expect(mayRepeat(publicOperations.createPublicKey, error)).toBe(otherwise);
  for (const id of LOGIN_OPERATIONS) {
    expect(mayRepeat({ id, repeatable: true }, error)).toBe(false);
  }
});
