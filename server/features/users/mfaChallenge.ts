import { Secret, TOTP } from "otpauth";
import type { User } from "../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../db/transaction.ts";
import { UnauthenticatedError } from "../../errors.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import { attemptsOf, forgetFailures, type LockoutKey, lockedOut } from "./lockout.ts";

/** How long a login waits for its second factor, in milliseconds (rules section 10.4). */
const CHALLENGE_LIFE = 30 * 60_000;
/** Seconds of a TOTP step (rules section 10). */
const STEP = 30;
/**
 * Wrong codes in a row after which a user's codes are not looked at: the rules name no limit, but six digits can be
 * guessed without one, and a stolen password makes as many logins as it likes.
 */
const ATTEMPTS = 5;
/** How long that lasts, and how long a wrong code is remembered, in milliseconds. */
const LOCK = 30 * 60_000;
/** Logins of one user that may wait; a further one ends the oldest. */
const WAITING = 10;

/** Where a user's wrong codes are counted: whatever their source, and whatever login they were for. */
export const mfaCounter = (userId: string) => ({ source: "mfa", subject: userId });

/**
 * The time step that a code belongs to: the present one or one of its neighbours; null for a wrong code.
 * @param secret base32
 */
export function matchingStep(services: Services, secret: string, code: string): number | null {
  const totp = new TOTP({ secret: Secret.fromBase32(secret), digits: 6, period: STEP, algorithm: "SHA1" });
  const timestamp = services.now().getTime();
  const delta = totp.validate({ token: code, window: 1, timestamp });
  return delta === null ? null : Math.floor(timestamp / 1000 / STEP) + delta;
}

/**
 * Keeps a login waiting for its second factor; of the token only a digest is stored.
 * @param user as it was when its password was found to be right
 * @returns false when the user's logins were ended since, as a new password does
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
 * Ends a waiting login: its token works once, and a code is accepted once.
 * @throws UnauthenticatedError token unknown or too old, code wrong or used before
 * @throws LockedOutError too many wrong codes
 */
export async function finishMfa(services: Services, token: string, code: string): Promise<User> {
  const refused = () => new UnauthenticatedError("wrong token or code");
  const digest = digestOf(token);
  const challenge = await services.db.mfaChallenge.findUnique({ where: { digest }, include: { user: true } });
  if (!challenge || challenge.expiresAt <= services.now()) throw refused();
  const { user } = challenge;
  // Taken before the code is looked at, so that guesses sent side by side count one by one.
  await takeAttempt(services, mfaCounter(user.id));
  const accepted = await inTransaction(services, async (tx) => {
    if (!(await acceptCode(within(services, tx), user, code))) return false;
    return (await tx.mfaChallenge.deleteMany({ where: { digest } })).count > 0;
  });
  if (!accepted) throw refused();
  return user;
}

/**
 * True for a right TOTP code of the user, which is then used, and ends the count of wrong ones: whoever has the second
 * factor is no guesser. One that was used already is refused, but the attempt that was taken for it is given back: of
 * requests that come at once with one code, one is accepted, and the others are no guesses.
 * @param services inside of a transaction, which must not be undone for a code that is refused
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
 * Takes one of the attempts under the key, for as long as guesses come.
 * @throws LockedOutError none is left
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

/** A user's MFA secret as the database keeps it. */
export const sealMfaSecret = (services: Services, userId: string, secret: string): string =>
  services.sealer.seal(secret, sealPurpose(userId));

/** A user's MFA secret in base32; null without MFA. */
function mfaSecretOf(services: Services, { id, mfaSecret }: User): string | null {
  return mfaSecret === null ? null : services.sealer.open(mfaSecret, sealPurpose(id));
}

/**
 * How much later than the step of a code that is right now the last one can be, in steps: two between neighbours, and two
 * between the clocks of instances. What is later yet was used by a clock that was ahead.
 */
const AHEAD = 4;

/** Marks a step as used; false when it, or a later one, was used before. */
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
