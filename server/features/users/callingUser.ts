import type { User } from "../../db/generated/sqlite/client.ts";
import { NotFoundError } from "../../http/errors.ts";
import type { UserCaller } from "../../http/identity.ts";
import type { Services } from "../../services.ts";

/**
 * The user whose token was sent.
 * @throws NotFoundError when it was deleted since
 */
export async function callingUser(services: Services, caller: UserCaller): Promise<User> {
  const user = await services.db.user.findUnique({ where: { id: caller.userId } });
  if (!user) throw new NotFoundError("the user does not exist any more");
  return user;
}
