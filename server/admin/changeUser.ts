import { inTransaction } from "../features/transaction.ts";
import { findUser } from "../features/users/login.ts";
import { NotFoundError } from "../http/errors.ts";
import { hashPassword } from "../passwords.ts";
import type { Services } from "../services.ts";

/** @throws NotFoundError no user has that name or e-mail */
async function idOf(services: Services, user: string): Promise<string> {
  const found = await findUser(services, user.toLowerCase());
  if (found === null) throw new NotFoundError(`no user has the name or e-mail ${JSON.stringify(user)}`);
  return found.id;
}

/**
 * Gives a user a new password and ends the user's lockouts, so that it can be used at once; tokens become void.
 * @param user username or e-mail
 * @returns the user's id
 * @throws NotFoundError no such user
 */
export async function resetPassword(services: Services, user: string, password: string): Promise<string> {
  const id = await idOf(services, user);
  const passwordHash = await hashPassword(password);
  await inTransaction(services, async (tx) => {
    await tx.user.update({ where: { id }, data: { passwordHash, tokenVersion: { increment: 1 } } });
    await tx.loginFailure.deleteMany({ where: { subject: id } });
  });
  return id;
}

/**
 * Turns MFA off for a user: secret, recovery codes, and logins that wait for a code.
 * @param user username or e-mail
 * @returns the user's id
 * @throws NotFoundError no such user
 */
export async function disableMfa(services: Services, user: string): Promise<string> {
  const id = await idOf(services, user);
  await inTransaction(services, async (tx) => {
    await tx.user.update({ where: { id }, data: { mfaSecret: null, mfaLastStep: null } });
    await tx.recoveryCode.deleteMany({ where: { userId: id } });
    await tx.mfaChallenge.deleteMany({ where: { userId: id } });
  });
  return id;
}

/**
 * Ends all logins of a user: every token becomes void, and so do logins that wait for a code.
 * @param user username or e-mail
 * @returns the user's id
 * @throws NotFoundError no such user
 */
export async function signOut(services: Services, user: string): Promise<string> {
  const id = await idOf(services, user);
  await inTransaction(services, async (tx) => {
    await tx.user.update({ where: { id }, data: { tokenVersion: { increment: 1 } } });
    await tx.mfaChallenge.deleteMany({ where: { userId: id } });
  });
  return id;
}
