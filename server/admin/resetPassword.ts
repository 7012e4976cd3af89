import { hashPassword } from "../passwords.ts";
import type { Services } from "../services.ts";

/**
 * Gives a user a new password and ends the user's lockouts, so that it can be used at once.
 * @param user username or e-mail
 * @returns the user's id; undefined when there is no such user
 */
export async function resetPassword(
  { db }: Services,
  user: string,
  password: string,
): Promise<string | undefined> {
  const name = user.toLowerCase();
  const found = await db.user.findFirst({
    where: { OR: [{ username: name }, { email: name }] },
    select: { id: true },
  });
  if (found === null) return undefined;
  const passwordHash = await hashPassword(password);
  await db.$transaction([
    db.user.update({ where: { id: found.id }, data: { passwordHash } }),
    db.loginFailure.deleteMany({ where: { subject: found.id } }),
  ]);
  return found.id;
}
