import { MINUTE } from "@gatehouse-access/sdk/times";
import { Secret, TOTP } from "otpauth";
import type { User } from "../../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import { UnauthenticatedError } from "../../../errors.ts";
import { digestOf } from "../../../secrets/digest.ts";
import type { Services } from "../../../services.ts";
import { attemptsOf, forgetFailures, type LockoutKey, lockedOut } from "../lockout.ts";

/** Lifetime of a login that is waiting for its second factor, in milliseconds (rules section 10.4). */
const CHALLENGE_LIFE = 30 * MINUTE;
/** Duration of a TOTP step, in seconds (rules section 10). */
const STEP = 30;
/**
 * Number of consecutive wrong codes after which the service rejects all codes of a user without checking them. The
 * rules define no limit. Without a limit, an attacker with a stolen password could start any number of logins and guess
 * the six digits.
 */
const ATTEMPTS = 5;
/**
 * Time for which the service stores the counted attempts after the last attempt, in milliseconds. If the maximum is
 * reached, the service rejects all codes of the user during this time.
 */
const LOCK = 30 * MINUTE;
/**
 * Maximum number of logins of one user that can wait for a second factor. Above this maximum, a new login ends the
 * oldest waiting login.
 */
const MAXIMUM_WAITING = 10;

/**
 * Returns the key of the counter for a user's wrong codes. All client addresses and all logins of the user share this
 * counter.
 */
export const mfaCounter = (userId: string) => ({ source: "mfa", subject: userId });

/**
 * Returns the time step of a code: the current step or an adjacent step. Returns null if the code is wrong.
 * @param secret base32
 */
export function matchingStep(services: Services, secret: string, code: string): number | null {
  const totp = new TOTP({ secret: Secret.fromBase32(secret), digits: 6, period: STEP, algorithm: "SHA1" });
  const timestamp = services.now().getTime();
  const delta = totp.validate({ token: code, window: 1, timestamp });
  return delta === null ? null : Math.floor(timestamp / 1000 / STEP) + delta;
}

/**
 * Stores a login that is waiting for its second factor, with the digest of its token.
 * @param user the user's row, as read for the password check
 * @returns false if the user's logins were ended after the password check, for example by a new password
 * @throws LockedOutError the user sent too many wrong codes
 */
export function startMfa(
  services: Services,
  { id: userId, tokenVersion }: Pick<User, "id" | "tokenVersion">,
  token: string,
): Promise<boolean> {
  const now = services.now();
  return inTransaction(services, async (tx) => {
    if ((await tx.user.count({ where: { id: userId, tokenVersion } })) === 0) return false;
    const counter = await tx.loginFailure.findUnique({ where: { source_subject: mfaCounter(userId) } });
    if (counter && attemptsOf(counter, now, LOCK) >= ATTEMPTS) throw lockedOut(counter.expiresAt);
    await tx.mfaChallenge.deleteMany({ where: { expiresAt: { lte: now } } });
    const waiting = await tx.mfaChallenge.findMany({
      where: { userId },
      orderBy: { expiresAt: "desc" },
      skip: MAXIMUM_WAITING - 1,
    });
    await tx.mfaChallenge.deleteMany({ where: { digest: { in: waiting.map(({ digest }) => digest) } } });
    await tx.mfaChallenge.create({
      data: { digest: digestOf(token), userId, expiresAt: new Date(now.getTime() + CHALLENGE_LIFE) },
    });
    return true;
  });
}

/**
 * Completes a login that is waiting for its second factor. The token and the code can each be used only once.
 * @throws UnauthenticatedError the token is unknown or expired, or the code is wrong or used
 * @throws LockedOutError the user sent too many wrong codes
 */
export async function finishMfa(services: Services, token: string, code: string): Promise<User> {
  const rejected = () => new UnauthenticatedError("wrong token or code");
  const digest = digestOf(token);
  const challenge = await services.db.mfaChallenge.findUnique({ where: { digest }, include: { user: true } });
  if (!challenge || challenge.expiresAt <= services.now()) throw rejected();
  const { user } = challenge;
  // The attempt is counted before the code is checked, so that every concurrent guess is counted.
  await takeAttempt(services, mfaCounter(user.id));
  const accepted = await inTransaction(services, async (tx) => {
    if (!(await acceptCode(within(services, tx), user, code))) return false;
    return (await tx.mfaChallenge.deleteMany({ where: { digest } })).count > 0;
  });
  if (!accepted) throw rejected();
  return user;
}

/**
 * Returns true if the TOTP code of the user is correct and unused. Marks a correct code as used, and resets the counter
 * of wrong codes. A used code is rejected, but is not counted as a wrong code. Concurrent requests with the same
 * correct code are not guesses, and one of these requests is accepted.
 * @param services services in a transaction. If the code is rejected, the transaction must still be committed.
 */
export async function acceptCode(services: Services, user: User, code: string): Promise<boolean> {
  const secret = mfaSecretOf(services, user);
  const step = secret === null ? null : matchingStep(services, secret, code);
  if (step === null) return false;
  const counter = mfaCounter(user.id);
  if (await claimStep(services, user.id, step)) {
    await forgetFailures(services, counter);
    return true;
  }
  await services.db.loginFailure.updateMany({
    where: { ...counter, attempts: { gt: 0 } },
    data: { attempts: { decrement: 1 } },
  });
  return false;
}

/**
 * Counts an attempt with the key. This restarts the retention of all counted attempts.
 * @throws LockedOutError the key has the maximum number of attempts
 */
export async function takeAttempt(services: Services, key: LockoutKey): Promise<void> {
  await inTransaction(services, async (tx) => {
    const now = services.now();
    // Expired counters are deleted. Otherwise, an attacker who tries many names could fill the disk.
    await tx.loginFailure.deleteMany({ where: { expiresAt: { lte: now } } });
    const known = await tx.loginFailure.findUnique({ where: { source_subject: key } });
    const attempts = attemptsOf(known, now, LOCK);
    if (known && attempts >= ATTEMPTS) throw lockedOut(known.expiresAt);
    const data = { attempts: attempts + 1, expiresAt: new Date(now.getTime() + LOCK) };
    await tx.loginFailure.upsert({
      where: { source_subject: key },
      create: { ...key, ...data },
      update: data,
    });
  });
}

const sealPurpose = (userId: string): string => `MFA secret of ${userId}`;

/** Encrypts a user's MFA secret for the database. */
export const sealMfaSecret = (services: Services, userId: string, secret: string): string =>
  services.sealer.seal(secret, sealPurpose(userId));

/** Returns a user's MFA secret in base32. Returns null if MFA is off. */
function mfaSecretOf(services: Services, { id, mfaSecret }: User): string | null {
  return mfaSecret === null ? null : services.sealer.open(mfaSecret, sealPurpose(id));
}

/**
 * Maximum number of steps by which the last used step can be later than the step of a correct code. Two of these steps
 * allow for codes of adjacent steps, and two allow for different clocks of the instances. If the last used step is even
 * later, the clock was wrong when this step was stored, so the service ignores this step.
 */
const AHEAD = 4;

/** Marks a TOTP step as used. Returns false if this step or a later step was already used. */
async function claimStep(services: Services, id: string, step: number): Promise<boolean> {
  const unused = [
    { mfaLastStep: null },
    { mfaLastStep: { lt: step } },
    { mfaLastStep: { gt: step + AHEAD } },
  ];
  const { count } = await services.db.user.updateMany({
    where: { id, OR: unused },
    data: { mfaLastStep: step },
  });
  return count === 1;
}
