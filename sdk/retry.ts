import { setTimeout as wait } from "node:timers/promises";
import type { Operation } from "./contract/index.ts";
import { RateLimitError, ServerError, TransportError } from "./errors.ts";

/** How often and how long a request is tried. */
export interface RetryPolicy {
  /**
   * How often a request is sent at most; 1: it is never repeated.
   * @default 4
   */
  readonly attempts: number;
  /**
   * Milliseconds for a call with all its attempts and pauses.
   * @default 60000
   */
  readonly deadline: number;
  /**
   * Longest first pause in milliseconds; each further one may be twice as long.
   * @default 250
   */
  readonly baseDelay: number;
  /**
   * Longest pause in milliseconds, unless the server asks for a longer one by `Retry-After`.
   * @default 10000
   */
  readonly maxDelay: number;
}

/** The policy of a client whose options say nothing of it. */
export const DEFAULT_RETRY: RetryPolicy = {
  attempts: 4,
  deadline: 60_000,
  baseDelay: 250,
  maxDelay: 10_000,
};

/** Clock, random numbers and waiting; tests replace them. */
export interface Timing {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Resolves after `ms`; rejects when `signal` aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** The real ones. */
export const SYSTEM_TIMING: Timing = {
  now: Date.now,
  random: Math.random,
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}),
};

/** The logins, which the client never repeats: three wrong ones lock the account (rules section 9). */
export const LOGIN_OPERATIONS: ReadonlySet<string> = new Set([
  "login",
  "authUser",
  "authMfa",
  "recoverMfa",
  "resetMfa",
]);

/**
 * Operations with a token that answer 401 also when a code in the request is wrong (rules section 10). They are not
 * sent again under another token: that would be a second guess of the code.
 */
export const CODE_OPERATIONS: ReadonlySet<string> = new Set(["enableMfa"]);

/** Statuses of a proxy or a starting server, worth another try; a 500 is not, it would be the same. */
const PASSING_STATUSES = [502, 503, 504];

/**
 * True when a request that failed with `error` may be sent again: it never arrived, the server refused it before it did
 * anything (429), or doing it twice changes nothing more. An idempotency key makes no difference: the client cannot
 * tell a server that knows it from one that ignores it, where a repeated creation would make two objects.
 */
export function mayRepeat(operation: Pick<Operation, "id" | "repeatable">, error: unknown): boolean {
  if (LOGIN_OPERATIONS.has(operation.id)) return false;
  if (error instanceof TransportError) {
    const unclear = error.reason === "interrupted" || error.reason === "timeout";
    return error.reason === "unreachable" || (unclear && operation.repeatable);
  }
  if (error instanceof RateLimitError) return true;
  if (error instanceof ServerError) {
    return operation.repeatable && PASSING_STATUSES.includes(error.status ?? 0);
  }
  return false;
}

/**
 * Milliseconds to wait after a failed attempt: a random part of a bound that doubles each time, and never less than
 * what the server asks for.
 * @param attempt which one failed, from 1
 * @param retryAfter milliseconds that the server asks for
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
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
