import { availableParallelism } from "node:os";
import { hash, verify } from "@node-rs/bcrypt";
import { BusyError } from "../errors.ts";

/** bcrypt cost (rules section 11). */
const COST = 10;

/** The hash of a password that nobody knows: verified for users that do not exist, so that it takes the same time. */
export const DUMMY_HASH = "$2b$10$BRITdGgaCbR5A82Is9c0FeNeu99MDP0yxI.wHzYUMS/427PK/jFuy";

/** Maximum number of waiting passwords: some seconds' work of two cores. */
const MAXIMUM_WAITING = 100;

/** Lets a limited number of jobs run at once, in the order of their calls; a limited number may wait. */
export class Slots {
  #free: number;
  readonly #maximumWaiting: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number, maximumWaiting: number) {
    this.#free = count;
    this.#maximumWaiting = maximumWaiting;
  }

  /**
   * @param signal drops the job if it still waits when the signal is aborted
   * @throws BusyError too many jobs wait already
   */
  async run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    try {
      return await job();
    } finally {
      const [next] = this.#waiting;
      if (next) next();
      else this.#free += 1;
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#maximumWaiting) {
      throw new BusyError("too many logins at once, try again", { "Retry-After": "5" });
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(begin);
        reject(signal?.reason);
      };
      const begin = () => {
        this.#waiting.delete(begin);
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      this.#waiting.add(begin);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }
}

// bcrypt runs in libuv's thread pool (4 threads by default), which signing and file access use too: a flood of
// logins must leave room for them.
const slots = new Slots(Math.max(1, Math.min(3, availableParallelism())), MAXIMUM_WAITING);

/**
 * The bcrypt hash of a password, computed off the main thread.
 * @param signal see {@link Slots.run}
 * @throws BusyError too many passwords wait already
 */
export function hashPassword(password: string, signal?: AbortSignal): Promise<string> {
  return slots.run(() => hash(password, { cost: COST }), signal);
}

/**
 * True when the password matches the hash; compared off the main thread.
 * @param signal see {@link Slots.run}
 * @throws BusyError too many passwords wait already
 */
export function verifyPassword(
  password: string,
  passwordHash: string,
  signal?: AbortSignal,
): Promise<boolean> {
  return slots.run(() => verify(password, passwordHash), signal);
}
