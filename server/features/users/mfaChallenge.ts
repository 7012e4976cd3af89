import { Secret, TOTP } from "otpauth";
import type { User } from "../../db/generated/sqlite/client.ts";
import { UnauthenticatedError } from "../../http/errors.ts";
import { digestOf } from "../../secrets.ts";
import type { Services } from "../../services.ts";
import { countFailure, forgetFailures, type LockoutKey } from "./lockout.ts";

/** How long a login waits for its second factor, in milliseconds (rules section 10.4). */
const CHALLENGE_LIFE = 30 * 60_000;
/** Seconds of a TOTP step (rules section 10). */
const STEP = 30;
/** Wrong codes that one login may try; the rules name no limit, but six digits can be guessed without one. */
const ATTEMPTS = 5;

/**
 * Logins that used up their wrong codes count as wrong logins, whatever their source: otherwise a stolen
 * password, which makes new logins as it likes, would leave all codes to be tried.
 */
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
  const attempt = await services.db.mfaChallenge.updateMany({
    where: { digest, attempts: { lt: ATTEMPTS } },
    data: { attempts: { increment: 1 } },
  });
  if (attempt.count === 0) throw refused();
  const step = user.mfaSecret === null ? null : matchingStep(services, user.mfaSecret, code);
  const accepted = step !== null && (await claimStep(services, user.id, step));
  if (!accepted) {
    const usedUp = await services.db.mfaChallenge.deleteMany({
      where: { digest, attempts: { gte: ATTEMPTS } },
    });
    if (usedUp.count > 0) await countFailure(services, mfaLockoutKey(user.id));
    throw refused();
  }
  const consumed = await services.db.mfaChallenge.deleteMany({ where: { digest } });
  if (consumed.count === 0) throw refused();
  await forgetFailures(services, mfaLockoutKey(user.id));
  return user;
}

/** Marks a step as used; false when it, or a later one, was used before. */
async function claimStep(services: Services, id: string, step: number): Promise<boolean> {
  const { count } = await services.db.user.updateMany({
    where: { id, OR: [{ mfaLastStep: null }, { mfaLastStep: { lt: step } }] },
    data: { mfaLastStep: step },
  });
  return count === 1;
}
