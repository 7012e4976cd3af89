import { availableParallelism } from "node:os";
import { hash, verify } from "@node-rs/bcrypt";

/** bcrypt cost (rules section 11). */
const COST = 10;

/** A hash of a password that nobody knows, of the same cost: checked where there is no user, for equal time. */
export const DUMMY_HASH = "$2b$10$BRITdGgaCbR5A82Is9c0FeNeu99MDP0yxI.wHzYUMS/427PK/jFuy";

/** Lets a bounded number of jobs run at once, in the order of asking. */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await job();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

// bcrypt runs in libuv's thread pool (4 threads by default), which signing and file access use too: a flood of
// logins must leave room for them.
const slots = new Slots(Math.max(1, Math.min(3, availableParallelism())));

/** bcrypt hash of a password, made off the main thread. */
export function hashPassword(password: string): Promise<string> {
  return slots.run(() => hash(password, { cost: COST }));
}

/** True when the password belongs to the hash; compared off the main thread. */
export function verifyPassword(password: string, passwordHash: string): Promise<boolean> {
  return slots.run(() => verify(password, passwordHash));
}
