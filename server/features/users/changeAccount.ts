import { isDeepStrictEqual } from "node:util";
import type { Prisma, User } from "../../db/generated/sqlite/client.ts";
import type { UserCaller } from "../../http/identity.ts";
import type { Services } from "../../services.ts";
import { type Operator, recordChange } from "../audit/recordChange.ts";
import type { Declared } from "../objects/managedObject.ts";
import { type Transaction, within } from "../transaction.ts";

/** What the audit trail shows of a user: of the password only that it changed. */
function shown(user: User, password: string): Declared {
  const { username, name, email, recoveryEmail, mfaSecret, status } = user;
  const mfa = mfaSecret !== null;
  return { username, name, email, recovery_email: recoveryEmail, mfa, password, status };
}

/** Who changes an account, in which request; an operator comes from no address. */
export interface AccountChange {
  readonly caller: UserCaller | Operator;
  readonly request: { readonly id: string; readonly address: string };
  /** Id of the operation, or name of the command. */
  readonly operation: string;
}

/**
 * Changes a user's account, with its entry in the audit trail, which belongs to no namespace. What changes nothing
 * leaves none.
 */
export async function changeAccount(
  services: Services,
  tx: Transaction,
  user: User,
  data: Prisma.UserUpdateInput,
  { caller, request, operation }: AccountChange,
): Promise<void> {
  const changed = await tx.user.update({ where: { id: user.id }, data });
  // Mailed tokens were for the old address, or are older than the new password.
  if (changed.email !== user.email || changed.passwordHash !== user.passwordHash) {
    await tx.mailToken.deleteMany({ where: { userId: user.id } });
  }
  const before = shown(user, "***");
  const after = {
    ...shown(changed, changed.passwordHash === user.passwordHash ? "***" : "*** (changed)"),
    ...(changed.tokenVersion !== user.tokenVersion && { logins: "ended" }),
  };
  if (isDeepStrictEqual(before, after)) return;
  await recordChange(within(services, tx), {
    tenantId: null,
    caller,
    requestId: request.id,
    address: request.address,
    operation,
    object: { kind: "user", id: user.id },
    before,
    after,
  });
}
