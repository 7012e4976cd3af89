import type { User } from "../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import { verifyPassword } from "../../secrets/passwords.ts";
import type { Services } from "../../services.ts";
import { countFailure, forgetFailures, lockEnd, lockedOut } from "./lockout.ts";
import { acceptCode, mfaCounter, takeAttempt } from "./mfa/mfaChallenge.ts";

/** The credentials that prove a user's identity. */
interface Credentials {
  readonly password: string;
  /** A TOTP code; may be empty. */
  readonly code?: string | undefined;
}

/**
 * Whether the password is the user's. Wrong ones are counted like wrong logins, but for all networks together: with a
 * stolen token the password could be guessed here.
 * @throws LockedOutError too many wrong passwords
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
  // Concurrent guesses all passed the first check; a lock that the wrong ones caused holds for all.
  const end = right ? await lockEnd(services, key) : await countFailure(services, key);
  if (end) throw lockedOut(end);
  if (right) await forgetFailures(services, key);
  return right;
}

/**
 * Checks that the user sends the request, and not the holder of a stolen login or mailbox: by the password and, with
 * MFA, by a code, which is then used up.
 * @throws LockedOutError too many wrong passwords or codes
 */
export async function proveOwner(
  services: Services,
  user: User,
  { password, code }: Credentials,
  signal: AbortSignal,
): Promise<"proved" | "wrong password" | "no code" | "wrong code"> {
  if (!(await isCurrentPassword(services, user, password, signal))) return "wrong password";
  if (user.mfaSecret === null) return "proved";
  if (!code) return "no code";
  await takeAttempt(services, mfaCounter(user.id));
  const accepted = await inTransaction(services, (tx) => acceptCode(within(services, tx), user, code));
  return accepted ? "proved" : "wrong code";
}
