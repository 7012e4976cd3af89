import { MINUTE } from "@gatehouse-access/sdk/times";
import type { LoginFailure } from "../../db/generated/sqlite/client.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { LockedOutError } from "../../errors.ts";
import { hasPeriodEnded } from "../../periods.ts";
import type { Services } from "../../services.ts";

/** Minimum time for which failed logins are stored, in minutes. */
const FIRST_KEPT = 2;

/**
 * Identifies a counter of failed logins by the source and the subject of the attempts. The subject is a user, or a name
 * that belongs to no user.
 */
export interface LockoutKey {
  readonly source: string;
  readonly subject: string;
}

/**
 * Returns the penalty for a number of consecutive failed attempts, in minutes (rules section 9). `lock` is the duration
 * of the lock; 0 means no lock. `kept` is the time for which the attempts are stored.
 */
export function penaltyOf(
  attempts: number,
  maximum: number,
): { readonly lock: number; readonly kept: number } {
  const lock = attempts < 3 ? 0 : Math.min(4 ** (attempts - 3), maximum);
  return { lock, kept: Math.max(FIRST_KEPT, Math.floor(Math.min(2.5 * lock, maximum))) };
}

/** Returns the time at which the lock on the key ends. Returns null if the key is not locked. */
export async function lockEnd(services: Services, key: LockoutKey): Promise<Date | null> {
  const maximum = services.settings.maximumLockout;
  if (maximum <= 0) return null;
  const failure = await services.db.loginFailure.findUnique({ where: { source_subject: key } });
  return lockOf(failure, services.now(), maximum);
}

function lockOf(failure: Pick<LoginFailure, "lockedUntil"> | null, now: Date, maximum: number): Date | null {
  const end = failure?.lockedUntil ?? null;
  return end && !hasPeriodEnded(end.getTime(), now.getTime(), maximum * MINUTE) ? end : null;
}

/**
 * Returns the number of failed attempts in a counter. Returns 0 if the counter has expired.
 * @param kept maximum retention of an attempt, in milliseconds
 */
export const attemptsOf = (failure: LoginFailure | null, now: Date, kept: number): number =>
  failure && !hasPeriodEnded(failure.expiresAt.getTime(), now.getTime(), kept) ? failure.attempts : 0;

/**
 * Counts a failed attempt, unless the key is already locked. Returns the time at which the lock ends. Returns null if
 * the key is not locked.
 */
export async function countFailure(services: Services, key: LockoutKey): Promise<Date | null> {
  const maximum = services.settings.maximumLockout;
  if (maximum <= 0) return null;
  let began = false;
  const end = await inTransaction(services, async (tx) => {
    began = false;
    const now = services.now();
    // Expired counters are deleted. Otherwise, an attacker who tries many names could fill the disk.
    await tx.loginFailure.deleteMany({ where: { expiresAt: { lte: now } } });
    const known = await tx.loginFailure.findUnique({ where: { source_subject: key } });
    const locked = lockOf(known, now, maximum);
    if (locked) return locked;
    const attempts = attemptsOf(known, now, Math.max(FIRST_KEPT, maximum) * MINUTE) + 1;
    const { lock, kept } = penaltyOf(attempts, maximum);
    const data = {
      attempts,
      lockedUntil: lock > 0 ? new Date(now.getTime() + lock * MINUTE) : null,
      expiresAt: new Date(now.getTime() + kept * MINUTE),
    };
    await tx.loginFailure.upsert({
      where: { source_subject: key },
      create: { ...key, ...data },
      update: data,
    });
    began = data.lockedUntil !== null;
    return data.lockedUntil;
  });
  if (began) services.metrics.lockouts.inc();
  return end;
}

/**
 * Deletes the counter of failed attempts. After a correct secret, call this function in the same transaction that marks
 * the secret as used. So a concurrent attempt with the same key cannot run between these two steps.
 */
export async function forgetFailures(services: Services, key: LockoutKey): Promise<void> {
  await services.db.loginFailure.deleteMany({ where: key });
}

/**
 * Returns the value of `X-Account-Lockout`: the time at which the lock ends, as Unix time in seconds, or 0 if there is
 * no lock.
 */
export function lockoutHeader(end: Date | null): string {
  return end === null ? "0" : String(Math.ceil(end.getTime() / 1000));
}

/**
 * Returns the error for a login that is rejected because of a lockout.
 * @param end time at which the lockout ends
 */
export function lockedOut(end: Date): LockedOutError {
  return new LockedOutError("too many failed logins: try again later", {
    "X-Account-Lockout": lockoutHeader(end),
  });
}
