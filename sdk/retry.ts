import { setTimeout as wait } from "node:timers/promises";
import type { Operation } from "./contract/index.ts";
import { RateLimitError, type RequestError, ServerError, TransportError } from "./errors.ts";
import { MINUTE } from "./times.ts";

/** Limits for the retries of a request. */
export interface RetryPolicy {
  /**
   * Time after the first attempt of a call during which further attempts may begin, in milliseconds. 0 disables
   * retries.
   * @default 60000
   */
  readonly budget: number;
  /**
   * Limit that replaces `budget` until the client has reached the service for the first time, in milliseconds. The
   * client therefore reports a wrong address sooner.
   * @default 10000
   */
  readonly firstContact: number;
  /** Maximum number of attempts of a call; 1 disables retries. @default no limit */
  readonly attempts?: number;
  /**
   * Maximum total time of a call, including all attempts and retry delays, in milliseconds. Without this limit, an
   * attempt that begins within `budget` can still take one minute.
   * @default no limit
   */
  readonly deadline?: number;
  /** Maximum first retry delay, in milliseconds. The maximum doubles with each further retry. @default 250 */
  readonly baseDelay: number;
  /**
   * Maximum of any retry delay, in milliseconds, unless the server requests a longer delay with `Retry-After`.
   * @default 10000
   */
  readonly maxDelay: number;
}

/** The default retry policy of a client. */
export const DEFAULT_RETRY: RetryPolicy = {
  budget: MINUTE,
  firstContact: 10_000,
  baseDelay: 250,
  maxDelay: 10_000,
};

/** The delay before a request is repeated. */
export interface RetryWait {
  /** The error of the last attempt. */
  readonly error: RequestError;
  /** The retry delay, in milliseconds. */
  readonly ms: number;
  /** Remaining time of the budget, in milliseconds. */
  readonly left: number;
}

/** Clock, random numbers and sleep function of a client, which tests replace. */
export interface Timing {
  /** The current time in milliseconds since 1970. */
  readonly now: () => number;
  /** A random number from 0 (included) to 1 (excluded). */
  readonly random: () => number;
  /** Returns a promise that resolves after `ms` milliseconds, or rejects when `signal` aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Clock, random numbers and sleep function of the system. */
export const SYSTEM_TIMING: Timing = {
  // Read the clock at each call, because a test may replace or restore the clock after this module is loaded.
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}),
};

/**
 * Ids of the login operations. The client repeats a login only if the request did not reach the service: three wrong
 * logins lock the account (rules section 9).
 */
export const LOGIN_OPERATIONS: ReadonlySet<string> = new Set([
  "login",
  "authUser",
  "authMfa",
  "recoverMfa",
  "resetMfa",
]);

/**
 * Ids of operations that also return 401 for a wrong code in the request (rules section 10). The client must not repeat
 * such a request with a new token.
 */
export const CODE_OPERATIONS: ReadonlySet<string> = new Set(["enableMfa"]);

/**
 * Statuses after which the client repeats a request. They indicate temporary failures, such as those of a proxy or a
 * starting server. The status 500 is not included, because the server would fail again.
 */
const PASSING_STATUSES = [502, 503, 504];

/**
 * Returns true if it is safe to repeat a failed request: the request did not reach the service, the server refused it
 * (429), or the operation has the same effect when it runs twice. An idempotency key does not make a request safe,
 * because the client cannot detect whether the server supports the header.
 */
export function mayRepeat(operation: Pick<Operation, "id" | "repeatable">, error: unknown): boolean {
  if (error instanceof TransportError && error.reason === "unreachable") return true;
  if (LOGIN_OPERATIONS.has(operation.id)) return false;
  if (error instanceof TransportError) {
    return operation.repeatable && (error.reason === "interrupted" || error.reason === "timeout");
  }
  if (error instanceof RateLimitError) return true;
  if (error instanceof ServerError) {
    return operation.repeatable && PASSING_STATUSES.includes(error.status ?? 0);
  }
  return false;
}

interface Failed {
  /** Number of the failed attempt, from 1. */
  readonly attempt: number;
  /** Remaining time of the budget, in milliseconds. */
  readonly left: number;
  /** Time to wait that the server requests, in milliseconds. Undefined if the server requests no wait. */
  readonly retryAfter?: number | undefined;
}

/**
 * Returns the retry delay before the next attempt, in milliseconds. Undefined if the budget is too small for another
 * attempt. The delay is a random part of a maximum that doubles with each attempt (full jitter). The delay is never
 * shorter than the server requests, and never longer than the remaining budget.
 */
export function pauseAfter(
  { attempt, left, retryAfter = 0 }: Failed,
  { baseDelay, maxDelay }: Pick<RetryPolicy, "baseDelay" | "maxDelay">,
  random: () => number,
): number | undefined {
  if (left <= 0 || retryAfter > left) return undefined;
  // For many attempts, 2 ** (attempt - 1) is Infinity, which min() accepts. A base delay of 0 is a separate case,
  // because 0 * Infinity is NaN.
  const ceiling = baseDelay <= 0 ? 0 : Math.min(maxDelay, baseDelay * 2 ** (attempt - 1));
  const part = Math.floor(random() * (retryAfter > 0 ? baseDelay : ceiling));
  return Math.min(retryAfter + part, left);
}

/**
 * Returns the time to wait in a `Retry-After` header (RFC 9110, section 10.2.3), in milliseconds; undefined if there is
 * no valid header.
 */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  const value = header?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
