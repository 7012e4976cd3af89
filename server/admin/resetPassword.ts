import { inTransaction } from "../features/transaction.ts";
import { findUser } from "../features/users/login.ts";
import { hashPassword } from "../passwords.ts";
import type { Services } from "../services.ts";

/**
 * Gives a user a new password and ends the user's lockouts, so that it can be used at once; tokens become void.
 * @param user username or e-mail
 * @returns the user's id; undefined when there is no such user
 */
export async function resetPassword(
  services: Services,
  user: string,
  password: string,
): Promise<string | undefined> {
  const found = await findUser(services, user.toLowerCase());
  if (found === null) return undefined;
  const passwordHash = await hashPassword(password);
  await inTransaction(services, async (tx) => {
    await tx.user.update({
      where: { id: found.id },
      data: { passwordHash, tokenVersion: { increment: 1 } },
    });
    await tx.loginFailure.deleteMany({ where: { subject: found.id } });
  });
  return found.id;
}
