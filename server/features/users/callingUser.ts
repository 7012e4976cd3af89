import type { User } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import { NotFoundError } from "../../errors.ts";
import { credentialRefusal } from "../../http/access/authenticate.ts";
import type { UserCaller } from "../../http/access/identity.ts";
import type { SqlServices } from "../../services.ts";

/**
 * The user whose token was sent.
 * @throws NotFoundError the user was deleted since
 * @throws UnauthenticatedError the user's logins were ended since: the response may hold a new token
 */
export async function callingUser(services: Pick<SqlServices, "db">, caller: UserCaller): Promise<User> {
  const user = await findRow(services.db, "User", { id: caller.userId });
  if (!user) throw new NotFoundError("the user does not exist any more");
  checkVersion(user, caller);
  return user;
}

/**
 * Checks that the token that authenticated the user is still valid.
 * @throws UnauthenticatedError the user's logins were ended since
 */
export function checkVersion(user: Pick<User, "tokenVersion">, caller: UserCaller): void {
  if (user.tokenVersion !== caller.tokenVersion) throw credentialRefusal();
}

/** The user as the caller, where something other than a token has authenticated the user: a password, a mailed code. */
export const actingUser = ({ id, username, tokenVersion }: User): UserCaller => ({
  kind: "user",
  userId: id,
  username,
  tokenVersion,
  token: null,
  tenant: "",
  role: null,
});
