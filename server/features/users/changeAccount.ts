import { isDeepStrictEqual } from "node:util";
import type { Prisma, User } from "../../db/generated/sqlite/client.ts";
import type { UserCaller } from "../../http/identity.ts";
import type { RequestFacts } from "../../http/routes.ts";
import type { Services } from "../../services.ts";
import { recordChange } from "../audit/recordChange.ts";
import type { Declared } from "../objects/managedObject.ts";
import { type Transaction, within } from "../transaction.ts";
import { sourceOf } from "./source.ts";

/** What the audit trail shows of a user: of the password only that it changed. */
function shown(user: User, password: string): Declared {
  const { username, name, email, recoveryEmail, mfaSecret } = user;
  return { username, name, email, recovery_email: recoveryEmail, mfa: mfaSecret !== null, password };
}

/**
 * Changes a user's own account, with its entry in the audit trail, which belongs to no namespace. What changes
 * nothing leaves none.
 */
export async function changeAccount(
  services: Services,
  tx: Transaction,
  write: {
    readonly user: User;
    readonly caller: UserCaller;
    readonly request: RequestFacts;
    readonly operation: string;
    readonly data: Prisma.UserUpdateInput;
  },
): Promise<void> {
  const { user, caller, request, operation, data } = write;
  const changed = await tx.user.update({ where: { id: user.id }, data });
  const before = shown(user, "***");
  const after = shown(changed, changed.passwordHash === user.passwordHash ? "***" : "*** (changed)");
  if (isDeepStrictEqual(before, after)) return;
  await recordChange(within(services, tx), {
    tenantId: null,
    caller,
    requestId: request.id,
    address: sourceOf(services.settings, request),
    operation,
    object: { kind: "user", id: user.id },
    before,
    after,
  });
}
