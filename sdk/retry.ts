import { setTimeout as wait } from "node:timers/promises";
import type { Operation } from "./contract/index.ts";
import { RateLimitError, type RequestError, ServerError, TransportError } from "./errors.ts";

/** For how long a request is repeated. */
export interface RetryPolicy {
  /**
   * Milliseconds from the first attempt of a call within which an attempt may begin; 0: the request is never repeated.
   * @default 60000
   */
  readonly budget: number;
  /**
   * The same while the client has never reached the service: a wrong address is reported sooner.
   * @default 10000
   */
  readonly firstContact: number;
  /** Most attempts of a call; 1: the request is never repeated. @default no limit */
  readonly attempts?: number;
  /**
   * Milliseconds after which a call is ended, with all its attempts and pauses.
   * @default none; an attempt is ended after a minute
   */
  readonly deadline?: number;
  /** Longest first pause in milliseconds; each further one may be twice as long. @default 250 */
  readonly baseDelay: number;
  /**
   * Longest pause in milliseconds, unless the server asks for a longer one by `Retry-After`.
   * @default 10000
   */
  readonly maxDelay: number;
}

/** The policy of a client whose options do not set it. */
export const DEFAULT_RETRY: RetryPolicy = {
  budget: 60_000,
  firstContact: 10_000,
  baseDelay: 250,
  maxDelay: 10_000,
};

/** A pause before a request is repeated. */
export interface RetryWait {
  /** Why the last attempt failed. */
  readonly error: RequestError;
  /** Milliseconds of the pause. */
  readonly ms: number;
  /** Milliseconds of the budget that are left. */
  readonly left: number;
}

/** Clock, random numbers and waiting; tests replace them. */
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

/** The client repeats a login only where it never arrived: three wrong ones lock the account (rules section 9). */
export const LOGIN_OPERATIONS: ReadonlySet<string> = new Set([
  "login",
  "authUser",
  "authMfa",
  "recoverMfa",
  "resetMfa",
]);

/** These answer 401 also when a code in the request is wrong (rules section 10), which must not be tried twice. */
export const CODE_OPERATIONS: ReadonlySet<string> = new Set(["enableMfa"]);

/** Statuses of a proxy or a starting server, worth another try; a 500 is not, it would be the same. */
const PASSING_STATUSES = [502, 503, 504];

/**
 * True when a request may be sent again: it never arrived, the server refused it (429), or doing it twice changes
 * nothing more. An idempotency key makes no difference: the client cannot tell which servers know it.
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
  /** Which attempt failed, from 1. */
  readonly attempt: number;
  /** Milliseconds of the budget that are left. */
  readonly left: number;
  /** Milliseconds that the server asks to wait, if it does. */
  readonly retryAfter?: number | undefined;
}

/**
 * Milliseconds to wait before the next attempt, or undefined where the budget has no room for one. The pause is a random
 * part of a bound that doubles each time (full jitter), never less than the server asks for, and never more than is left.
 */
export function pauseAfter(
  { attempt, left, retryAfter = 0 }: Failed,
  { baseDelay, maxDelay }: Pick<RetryPolicy, "baseDelay" | "maxDelay">,
  random: () => number,
): number | undefined {
  if (left <= 0 || retryAfter > left) return undefined;
  // 2 ** 1024 is Infinity, which min() takes; a base of 0 would make it NaN.
  const ceiling = baseDelay <= 0 ? 0 : Math.min(maxDelay, baseDelay * 2 ** (attempt - 1));
  const part = Math.floor(random() * (retryAfter > 0 ? baseDelay : ceiling));
  return Math.min(retryAfter + part, left);
}

/** Milliseconds that a `Retry-After` header asks to wait (RFC 9110, section 10.2.3), or undefined. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  const value = header?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
