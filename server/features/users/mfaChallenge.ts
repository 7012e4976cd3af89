import { Secret, TOTP } from "otpauth";
import type { User } from "../../db/generated/sqlite/client.ts";
import { UnauthenticatedError } from "../../http/errors.ts";
import { digestOf } from "../../secrets.ts";
import type { Services } from "../../services.ts";
import { inTransaction } from "../transaction.ts";
import { countFailure, forgetFailures, type LockoutKey } from "./lockout.ts";

/** How long a login waits for its second factor, in milliseconds (rules section 10.4). */
const CHALLENGE_LIFE = 30 * 60_000;
/** Seconds of a TOTP step (rules section 10). */
const STEP = 30;
/**
 * Codes that the waiting logins of a user may try, all together: the rules name no limit, but six digits can be
 * guessed without one, and a stolen password makes as many logins as it likes.
 */
const ATTEMPTS = 5;

/** Tries beyond them count as wrong logins, whatever their source. */
export const mfaLockoutKey = (userId: string): LockoutKey => ({ source: "mfa", subject: userId });

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

/** Keeps a login waiting for its second factor; of the token only a digest is stored. */
export async function startMfa(services: Services, userId: string, token: string): Promise<void> {
  const now = services.now();
  await services.db.mfaChallenge.deleteMany({ where: { expiresAt: { lte: now } } });
  await services.db.mfaChallenge.create({
    data: { digest: digestOf(token), userId, expiresAt: new Date(now.getTime() + CHALLENGE_LIFE) },
  });
}

/**
 * Ends a waiting login: its token works once, and a code is accepted once.
 * @throws UnauthenticatedError token unknown or too old, code wrong or used before
 */
export async function finishMfa(services: Services, token: string, code: string): Promise<User> {
  const refused = () => new UnauthenticatedError("wrong token or code");
  const digest = digestOf(token);
  const challenge = await services.db.mfaChallenge.findUnique({ where: { digest }, include: { user: true } });
  if (!challenge || challenge.expiresAt <= services.now()) throw refused();
  const { user } = challenge;
  // Taken before the code is looked at, so that guesses sent side by side count one by one.
  if (!(await takeAttempt(services, digest, user.id))) {
    await countFailure(services, mfaLockoutKey(user.id));
    throw refused();
  }
  const step = user.mfaSecret === null ? null : matchingStep(services, user.mfaSecret, code);
  const accepted = step !== null && (await claimStep(services, user.id, step));
  if (!accepted) throw refused();
  const consumed = await services.db.mfaChallenge.deleteMany({ where: { digest } });
  if (consumed.count === 0) throw refused();
  // Whoever has the second factor is no guesser: other waiting logins begin anew.
  await services.db.mfaChallenge.updateMany({ where: { userId: user.id }, data: { attempts: 0 } });
  await forgetFailures(services, mfaLockoutKey(user.id));
  return user;
}

/**
 * Takes one of the attempts that the user's waiting logins share. A login that was given up counts until it would
 * have ended, so that a new one brings no new attempts.
 */
async function takeAttempt(services: Services, digest: string, userId: string): Promise<boolean> {
  return inTransaction(services, async (tx) => {
    const { _sum } = await tx.mfaChallenge.aggregate({
      where: { userId, expiresAt: { gt: services.now() } },
      _sum: { attempts: true },
    });
    if ((_sum.attempts ?? 0) >= ATTEMPTS) return false;
    const { count } = await tx.mfaChallenge.updateMany({
      where: { digest },
      data: { attempts: { increment: 1 } },
    });
    return count === 1;
  });
}

/** Marks a step as used; false when it, or a later one, was used before. */
async function claimStep(services: Services, id: string, step: number): Promise<boolean> {
  const { count } = await services.db.user.updateMany({
    where: { id, OR: [{ mfaLastStep: null }, { mfaLastStep: { lt: step } }] },
    data: { mfaLastStep: step },
  });
  return count === 1;
}
