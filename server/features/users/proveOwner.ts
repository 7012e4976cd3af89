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
 * Returns whether the password is the user's password. Wrong passwords count like wrong logins. One counter covers
 * all networks, because an attacker with a stolen token could guess the password here.
 * @throws LockedOutError the user sent too many wrong passwords
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
  const correct = await verifyPassword(password, user.passwordHash, signal);
  // Concurrent guesses all passed the first check. A lock that wrong guesses caused applies to all of them.
  const end = correct ? await lockEnd(services, key) : await countFailure(services, key);
  if (end) throw lockedOut(end);
  if (correct) await forgetFailures(services, key);
  return correct;
}

/**
 * Checks that the user sends the request, and not the owner of a stolen login or mailbox. The proof is the password
 * and, with MFA, a code. The code can be used once.
 * @throws LockedOutError the user sent too many wrong passwords or codes
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
