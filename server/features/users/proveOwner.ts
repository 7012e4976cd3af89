import type { User } from "../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import { verifyPassword } from "../../secrets/passwords.ts";
import type { Services } from "../../services.ts";
import { countFailure, forgetFailures, lockEnd, lockedOut } from "./lockout.ts";
import { acceptCode, mfaCounter, takeAttempt } from "./mfa/mfaChallenge.ts";

/** The credentials that prove a user's identity. */
interface Credentials {
  readonly password: string;
  /** TOTP code. Empty or undefined if the request contains no code. */
  readonly code?: string | undefined;
}

/**
 * Returns true if the password is the user's current password. Wrong passwords are counted, and can lock the user. One
 * counter covers all networks. With a separate counter for each network, an attacker with a stolen token could guess
 * the password.
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
  // Concurrent attempts may have locked the key during the password check. The lock then also applies to this attempt,
  // even if its password is correct.
  const end = correct ? await lockEnd(services, key) : await countFailure(services, key);
  if (end) throw lockedOut(end);
  if (correct) await forgetFailures(services, key);
  return correct;
}

/**
 * Checks that a request comes from the user, and not from an attacker with access to a token or the mailbox of the
 * user. The proof is the password and, if MFA is on, a code. A code can be used only once.
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
