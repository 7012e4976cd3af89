import { availableParallelism } from "node:os";
import { hash, verify } from "@node-rs/bcrypt";
import { Semaphore } from "./Semaphore.ts";

/** bcrypt cost (rules section 11). */
const COST = 10;

/**
 * A hash of an unknown password. If a user does not exist, the service verifies the password against this hash, so that
 * the check takes the same time as for an existing user.
 */
export const DUMMY_HASH = "$2b$10$BRITdGgaCbR5A82Is9c0FeNeu99MDP0yxI.wHzYUMS/427PK/jFuy";

/** Maximum number of waiting password checks. Two cores complete this number of checks in a few seconds. */
const MAXIMUM_WAITING = 100;

// bcrypt runs in libuv's thread pool (4 threads by default). Signing and file access also use this pool. The
// semaphore's limit leaves at least one of the four threads free during a flood of logins.
const threads = Math.max(1, Math.min(3, availableParallelism()));
const semaphore = new Semaphore(threads, MAXIMUM_WAITING, "too many logins at once; try again");

/**
 * Computes the bcrypt hash of a password off the main thread.
 * @param signal see {@link Semaphore.run}
 * @throws BusyError too many password checks are already waiting
 */
export function hashPassword(password: string, signal?: AbortSignal): Promise<string> {
  return semaphore.run(() => hash(password, { cost: COST }), signal);
}

/**
 * Returns true if the password matches the hash. The comparison runs off the main thread.
 * @param signal see {@link Semaphore.run}
 * @throws BusyError too many password checks are already waiting
 */
export function verifyPassword(
  password: string,
  passwordHash: string,
  signal?: AbortSignal,
): Promise<boolean> {
  return semaphore.run(() => verify(password, passwordHash), signal);
}
