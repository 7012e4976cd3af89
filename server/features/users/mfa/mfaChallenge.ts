import { Secret, TOTP } from "otpauth";
import type { User } from "../../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import { UnauthenticatedError } from "../../../errors.ts";
import { digestOf } from "../../../secrets/digest.ts";
import type { Services } from "../../../services.ts";
import { attemptsOf, forgetFailures, type LockoutKey, lockedOut } from "../lockout.ts";

/** How long a login waits for its second factor, in milliseconds (rules section 10.4). */
const CHALLENGE_LIFE = 30 * 60_000;
/** Seconds of a TOTP step (rules section 10). */
const STEP = 30;
/**
 * Wrong codes in a row after which a user's codes are refused unchecked. The rules name no limit, but six digits can be
 * guessed without one, and with a stolen password any number of logins can be begun.
 */
const ATTEMPTS = 5;
/** How long codes are then refused, and how long a wrong code is remembered, in milliseconds. */
const LOCK = 30 * 60_000;
/** Maximum number of waiting logins of one user; a further one ends the oldest. */
const WAITING = 10;

/** Key of the counter of a user's wrong codes, from all sources and for all logins. */
export const mfaCounter = (userId: string) => ({ source: "mfa", subject: userId });

/**
 * The time step of a code: the present one or one of its neighbors; null for a wrong code.
 * @param secret base32
 */
export function matchingStep(services: Services, secret: string, code: string): number | null {
  const totp = new TOTP({ secret: Secret.fromBase32(secret), digits: 6, period: STEP, algorithm: "SHA1" });
  const timestamp = services.now().getTime();
  const delta = totp.validate({ token: code, window: 1, timestamp });
  return delta === null ? null : Math.floor(timestamp / 1000 / STEP) + delta;
}

/**
 * Stores a login that waits for its second factor, by the digest of its token.
 * @param user as read when the password was checked
 * @returns false when the user's logins were ended since, for example by a new password
 * @throws LockedOutError too many wrong codes
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
      skip: WAITING - 1,
    });
    await tx.mfaChallenge.deleteMany({ where: { digest: { in: waiting.map(({ digest }) => digest) } } });
    await tx.mfaChallenge.create({
      data: { digest: digestOf(token), userId, expiresAt: new Date(now.getTime() + CHALLENGE_LIFE) },
    });
    return true;
  });
}

/**
 * Completes a waiting login: its token works once, and a code is accepted once.
 * @throws UnauthenticatedError token unknown or expired, code wrong or used
 * @throws LockedOutError too many wrong codes
 */
export async function finishMfa(services: Services, token: string, code: string): Promise<User> {
  const refused = () => new UnauthenticatedError("wrong token or code");
  const digest = digestOf(token);
  const challenge = await services.db.mfaChallenge.findUnique({ where: { digest }, include: { user: true } });
  if (!challenge || challenge.expiresAt <= services.now()) throw refused();
  const { user } = challenge;
  // Taken before the code is checked, so that concurrent guesses count one by one.
  await takeAttempt(services, mfaCounter(user.id));
  const accepted = await inTransaction(services, async (tx) => {
    if (!(await acceptCode(within(services, tx), user, code))) return false;
    return (await tx.mfaChallenge.deleteMany({ where: { digest } })).count > 0;
  });
  if (!accepted) throw refused();
  return user;
}

/**
 * True for a right TOTP code of the user, which is then used up and resets the count of wrong codes, since its sender
 * has the second factor. A used code is refused, but its attempt is given back: of concurrent requests with the same
 * code one is accepted, and the others are no guesses.
 * @param services inside of a transaction, which must not be rolled back when a code is refused
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
 * Takes one of the attempts under the key; each attempt extends the time for which they are remembered.
 * @throws LockedOutError no attempt is left
 */
export async function takeAttempt(services: Services, key: LockoutKey): Promise<void> {
  await inTransaction(services, async (tx) => {
    const now = services.now();
    // Otherwise a stranger who tries many names could fill the disk.
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

/** Seals a user's MFA secret for the database. */
export const sealMfaSecret = (services: Services, userId: string, secret: string): string =>
  services.sealer.seal(secret, sealPurpose(userId));

/** A user's MFA secret in base32; null without MFA. */
function mfaSecretOf(services: Services, { id, mfaSecret }: User): string | null {
  return mfaSecret === null ? null : services.sealer.open(mfaSecret, sealPurpose(id));
}

/**
 * How far the last used step may be ahead of a right code's step, in steps: two between neighbors, and two between the
 * clocks of instances. A step further ahead was used by a clock that was wrong.
 */
const AHEAD = 4;

/** Marks a step as used; false if this or a later step was used before. */
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
