import type { User } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import { NotFoundError } from "../../errors.ts";
import { credentialRefusal } from "../../http/access/authenticate.ts";
import type { UserCaller } from "../../http/access/identity.ts";
import type { SqlServices } from "../../services.ts";

/**
 * Returns the user of the token.
 * @throws NotFoundError the user has been deleted since
 * @throws UnauthenticatedError the user's logins have ended since; the response could contain a new token
 */
export async function callingUser(services: Pick<SqlServices, "db">, caller: UserCaller): Promise<User> {
  const user = await findRow(services.db, "User", { id: caller.userId });
  if (!user) throw new NotFoundError("the user no longer exists");
  checkVersion(user, caller);
  return user;
}

/**
 * Checks that the token that authenticated the user is still valid.
 * @throws UnauthenticatedError the user's logins have ended since
 */
export function checkVersion(user: Pick<User, "tokenVersion">, caller: UserCaller): void {
  if (user.tokenVersion !== caller.tokenVersion) throw credentialRefusal();
}

/** Returns the user as a caller who was not authenticated by a token, but by a password or a mailed code. */
export const actingUser = ({ id, username, tokenVersion }: User): UserCaller => ({
  kind: "user",
  userId: id,
  username,
  tokenVersion,
  token: null,
  tenant: "",
  role: null,
});
