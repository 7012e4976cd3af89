import type { User } from "../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../db/transaction.ts";
import { verifyPassword } from "../../secrets/passwords.ts";
import type { Services } from "../../services.ts";
import { countFailure, forgetFailures, lockEnd, lockedOut } from "./lockout.ts";
import { acceptCode, mfaCounter, takeAttempt } from "./mfaChallenge.ts";

/** What a user knows and has. */
export interface Proof {
  readonly password: string;
  /** A TOTP code; empty or left out: none. */
  readonly code?: string | undefined;
}

/**
 * Whether it is the user's password. Wrong ones are counted as wrong logins are, from wherever they come: with a stolen token the password could be
 * guessed here.
 * @throws LockedOutError too many wrong ones
 */
export async function isCurrentPassword(
  services: Services,
  user: User,
  password: string,
  signal: AbortSignal,
): Promise<boolean> {
  const key = { source: "password", subject: user.id };
  const locked = await lockEnd(services, key);
  if (locked) throw lockedOut(locked);
  const right = await verifyPassword(password, user.passwordHash, signal);
  // Guesses sent side by side all passed the first look; the lock that the wrong ones brought holds for all.
  const end = right ? await lockEnd(services, key) : await countFailure(services, key);
  if (end) throw lockedOut(end);
  if (right) await forgetFailures(services, key);
  return right;
}

/**
 * Whether it is the user, and not somebody who has borrowed a login or a mailbox: the password shows it and, where there
 * is MFA, a code, which is then used.
 * @throws LockedOutError too many wrong ones of either
 */
export async function proveOwner(
  services: Services,
  user: User,
  { password, code }: Proof,
  signal: AbortSignal,
): Promise<"proved" | "wrong password" | "no code" | "wrong code"> {
  if (!(await isCurrentPassword(services, user, password, signal))) return "wrong password";
  if (user.mfaSecret === null) return "proved";
  if (!code) return "no code";
  await takeAttempt(services, mfaCounter(user.id));
  const accepted = await inTransaction(services, (tx) => acceptCode(within(services, tx), user, code));
  return accepted ? "proved" : "wrong code";
}
