import { setTimeout as wait } from "node:timers/promises";
import type { Operation } from "./contract/index.ts";
import { RateLimitError, type RequestError, ServerError, TransportError } from "./errors.ts";

/** Limits of the repetition of a request. */
export interface RetryPolicy {
  /**
   * Milliseconds from the first attempt of a call within which an attempt may begin; 0: the request is never
   * repeated.
   * @default 60000
   */
  readonly budget: number;
  /**
   * Limit in place of `budget` until the client has reached the service for the first time. A wrong address is thus
   * reported sooner.
   * @default 10000
   */
  readonly firstContact: number;
  /** Maximum number of attempts of a call; 1: the request is never repeated. @default no limit */
  readonly attempts?: number;
  /**
   * Milliseconds after which a call ends, including all its attempts and pauses.
   * @default none; an attempt ends after a minute
   */
  readonly deadline?: number;
  /** Maximum first pause in milliseconds; each further pause may be twice as long. @default 250 */
  readonly baseDelay: number;
  /**
   * Maximum pause in milliseconds, unless the server requests a longer pause with `Retry-After`.
   * @default 10000
   */
  readonly maxDelay: number;
}

/** The default retry policy of a client. */
export const DEFAULT_RETRY: RetryPolicy = {
  budget: 60_000,
  firstContact: 10_000,
  baseDelay: 250,
  maxDelay: 10_000,
};

/** A pause before a request is repeated. */
export interface RetryWait {
  /** The error of the last attempt. */
  readonly error: RequestError;
  /** Milliseconds of the pause. */
  readonly ms: number;
  /** Remaining milliseconds of the budget. */
  readonly left: number;
}

/** Clock, random numbers and waiting; tests replace them. */
export interface Timing {
  /** The current time in milliseconds since 1970. */
  readonly now: () => number;
  /** A random number from 0 (included) to 1 (excluded). */
  readonly random: () => number;
  /** Resolves after `ms`; rejects when `signal` aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** The real clock, random numbers and waiting. */
export const SYSTEM_TIMING: Timing = {
  now: Date.now,
  random: Math.random,
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}),
};

/**
 * Logins. The client repeats a login only if it never arrived: three wrong logins lock the account (rules section 9).
 */
export const LOGIN_OPERATIONS: ReadonlySet<string> = new Set([
  "login",
  "authUser",
  "authMfa",
  "recoverMfa",
  "resetMfa",
]);

/**
 * Operations that also return 401 for a wrong code in the request (rules section 10). Such a request must not be
 * repeated.
 */
export const CODE_OPERATIONS: ReadonlySet<string> = new Set(["enableMfa"]);

/** Statuses of a proxy or of a starting server. They are worth another attempt; a 500 would occur again. */
const PASSING_STATUSES = [502, 503, 504];

/**
 * True if a request may be repeated: it never arrived, the server refused it (429), or a repetition changes nothing
 * more. An idempotency key makes no difference, because the client cannot detect which servers support it.
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
  /** Remaining milliseconds of the budget. */
  readonly left: number;
  /** Milliseconds to wait that the server requests, if it does. */
  readonly retryAfter?: number | undefined;
}

/**
 * Milliseconds to wait before the next attempt; undefined if the budget is too small for another attempt. The pause
 * is a random part of a bound that doubles each time (full jitter). It is never shorter than the server requests, and
 * never longer than the remaining budget.
 */
export function pauseAfter(
  { attempt, left, retryAfter = 0 }: Failed,
  { baseDelay, maxDelay }: Pick<RetryPolicy, "baseDelay" | "maxDelay">,
  random: () => number,
): number | undefined {
  if (left <= 0 || retryAfter > left) return undefined;
  // 2 ** 1024 is Infinity, which min() accepts; a base of 0 would make it NaN.
  const ceiling = baseDelay <= 0 ? 0 : Math.min(maxDelay, baseDelay * 2 ** (attempt - 1));
  const part = Math.floor(random() * (retryAfter > 0 ? baseDelay : ceiling));
  return Math.min(retryAfter + part, left);
}

/** Milliseconds of a `Retry-After` header (RFC 9110, section 10.2.3), or undefined. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  const value = header?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
