import { LockedOutError } from "../../http/errors.ts";
import type { Services } from "../../services.ts";
import { inTransaction } from "../transaction.ts";

const MINUTE = 60_000;

/** Who is counted: wrong logins of a source for a subject, which is a user or a name that no user has. */
export interface LockoutKey {
  readonly source: string;
  readonly subject: string;
}

/**
 * What the n-th wrong attempt in a row brings, in minutes: how long the lock lasts (0: none), and how long the
 * attempt is remembered (rules section 9).
 */
export function penaltyOf(
  attempts: number,
  maximum: number,
): { readonly lock: number; readonly kept: number } {
  const lock = attempts < 3 ? 0 : Math.min(4 ** (attempts - 3), maximum);
  return { lock, kept: Math.max(2, Math.floor(Math.min(2.5 * lock, maximum))) };
}

/** When the lock on the key ends; null without one. */
export async function lockEnd(services: Services, key: LockoutKey): Promise<Date | null> {
  if (services.settings.maximumLockoutMinutes <= 0) return null;
  const failure = await services.db.loginFailure.findUnique({ where: { source_subject: key } });
  return failure?.lockedUntil && failure.lockedUntil > services.now() ? failure.lockedUntil : null;
}

/** Counts a wrong attempt, unless the key is locked already. Returns when the lock ends; null without one. */
export async function countFailure(services: Services, key: LockoutKey): Promise<Date | null> {
  const maximum = services.settings.maximumLockoutMinutes;
  if (maximum <= 0) return null;
  let began = false;
  const end = await inTransaction(services, async (tx) => {
    began = false;
    const now = services.now();
    // Otherwise a stranger who tries many names could fill the disk.
    await tx.loginFailure.deleteMany({ where: { expiresAt: { lte: now } } });
    const known = await tx.loginFailure.findUnique({ where: { source_subject: key } });
    if (known?.lockedUntil && known.lockedUntil > now) return known.lockedUntil;
    const attempts = (known?.attempts ?? 0) + 1;
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

/** Forgets the wrong attempts. */
export async function forgetFailures(services: Services, key: LockoutKey): Promise<void> {
  await services.db.loginFailure.deleteMany({ where: key });
}

/** Value of `X-Account-Lockout`: unix second of the end, 0 without a lock. */
export function lockoutHeader(end: Date | null): string {
  return end === null ? "0" : String(Math.ceil(end.getTime() / 1000));
}

/** @param end when the lock ends */
export function lockedOut(end: Date): LockedOutError {
  return new LockedOutError("too many wrong logins, try again later", {
    "X-Account-Lockout": lockoutHeader(end),
  });
}
