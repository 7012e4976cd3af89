import type { User } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import { NotFoundError } from "../../errors.ts";
import { credentialRefusal } from "../../http/access/authenticate.ts";
import type { UserCaller } from "../../http/access/identity.ts";
import type { SqlServices } from "../../services.ts";

/**
 * Returns the user to whom the token belongs.
 * @throws NotFoundError the user was deleted after the token was checked
 * @throws UnauthenticatedError the user's logins were ended after the token was checked. Otherwise, a response could
 *   contain a new token.
 */
export async function callingUser(services: Pick<SqlServices, "db">, caller: UserCaller): Promise<User> {
  const user = await findRow(services.db, "User", { id: caller.userId });
  if (!user) throw new NotFoundError("the user no longer exists");
  checkVersion(user, caller);
  return user;
}

/**
 * Checks that the token that authenticated the user is still valid.
 * @throws UnauthenticatedError the user's logins were ended after the token was checked
 */
export function checkVersion(user: Pick<User, "tokenVersion">, caller: UserCaller): void {
  if (user.tokenVersion !== caller.tokenVersion) throw credentialRefusal();
}

/**
 * Returns the user as the caller of a request. Use it if a password or a mailed code authenticated the request instead
 * of a token.
 */
export const actingUser = ({ id, username, tokenVersion }: User): UserCaller => ({
  kind: "user",
  userId: id,
  username,
  tokenVersion,
  token: null,
  tenant: "",
  role: null,
});
