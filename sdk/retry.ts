import { setTimeout as wait } from "node:timers/promises";
import type { Operation } from "./contract/index.ts";
import { RateLimitError, ServerError, TransportError } from "./errors.ts";

/** How often and how long a request is tried. */
export interface RetryPolicy {
  /** Most times a request is sent; 1 means never again. Default 4. */
  readonly attempts: number;
  /** Milliseconds for a call with all its attempts and pauses. Default 60,000. */
  readonly deadline: number;
  /** Upper bound of the first pause in milliseconds; it doubles with each. Default 250. */
  readonly baseDelay: number;
  /** Upper bound of every pause in milliseconds, but for a longer `Retry-After`. Default 10,000. */
  readonly maxDelay: number;
}

export const DEFAULT_RETRY: RetryPolicy = {
  attempts: 4,
  deadline: 60_000,
  baseDelay: 250,
  maxDelay: 10_000,
};

/** Clock, chance and sleep; replaced in tests. */
export interface Timing {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Resolves after `ms`; rejects when `signal` aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

export const SYSTEM_TIMING: Timing = {
  now: Date.now,
  random: Math.random,
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}),
};

/** Logins are never repeated by the client: three wrong ones lock the account (rules section 9). */
export const LOGIN_OPERATIONS: ReadonlySet<string> = new Set([
  "login",
  "authUser",
  "authMfa",
  "recoverMfa",
  "resetMfa",
]);

/**
 * Operations with a token whose 401 may be about a code in the request instead (rules section 10): sending it
 * again under another token would be a second guess.
 */
export const CODE_OPERATIONS: ReadonlySet<string> = new Set(["enableMfa"]);

/** Statuses of a proxy or a starting server, worth another try; a 500 is not, it would be the same. */
const PASSING_STATUSES = [502, 503, 504];

/**
 * True when `error` lets `operation` be sent again: it never arrived, the server refused it before doing
 * anything (429), or running it twice changes nothing more. An idempotency key does not count: the client can
 * not tell a server that knows it from one that ignores it, and would make two objects there.
 */
export function mayRepeat(operation: Pick<Operation, "id" | "repeatable">, error: unknown): boolean {
  if (LOGIN_OPERATIONS.has(operation.id)) {
    return false;
  }
  if (error instanceof TransportError) {
    const unclear = error.reason === "interrupted" || error.reason === "timeout";
    return error.reason === "unreachable" || (unclear && operation.repeatable);
  }
  if (error instanceof RateLimitError) {
    return true;
  }
  if (error instanceof ServerError) {
    return operation.repeatable && PASSING_STATUSES.includes(error.status ?? 0);
  }
  return false;
}

/**
 * Milliseconds to wait after failed attempt number `attempt` (from 1): exponential with full jitter, and
 * never less than what the server asked for.
 */
export function pauseAfter(
  attempt: number,
  policy: Pick<RetryPolicy, "baseDelay" | "maxDelay">,
  random: () => number,
  retryAfter = 0,
): number {
  // 2 ** 1024 is Infinity, which min() takes; a base of 0 would make it NaN.
  const ceiling =
    policy.baseDelay <= 0 ? 0 : Math.min(policy.maxDelay, policy.baseDelay * 2 ** (attempt - 1));
  return retryAfter > 0 ? retryAfter + random() * policy.baseDelay : random() * ceiling;
}

/** Milliseconds that a `Retry-After` header asks to wait (RFC 9110, section 10.2.3), or undefined. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  const value = header?.trim();
  if (!value) {
    return undefined;
  }
  if (/^\d+$/.test(value)) {
    return Number(value) * 1000;
  }
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
