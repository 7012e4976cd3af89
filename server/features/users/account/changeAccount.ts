import { isDeepStrictEqual } from "node:util";
import type { Declared } from "../../../changes/managedObject.ts";
import { type Operator, recordChange } from "../../../changes/recordChange.ts";
import type { Prisma, User } from "../../../db/generated/sqlite/client.ts";
import { type Transaction, within } from "../../../db/sql/transaction.ts";
import type { UserCaller } from "../../../http/access/identity.ts";
import type { Services } from "../../../services.ts";
import { checkVersion } from "../callingUser.ts";

/**
 * Returns the purposes of the mailed tokens that a change to the account invalidates. A new e-mail address or a new
 * password invalidates activation and recovery tokens. A new e-mail address or recovery address invalidates the
 * confirmation token of the pending address that would have replaced it. A change that ends all logins invalidates the
 * confirmation tokens of all pending addresses.
 */
function endedTokens(user: User, changed: User): string[] {
  const isNew = (column: "email" | "recoveryEmail" | "passwordHash" | "tokenVersion") =>
    changed[column] !== user[column];
  const ended: string[] = [];
  if (isNew("email") || isNew("passwordHash")) ended.push("activation", "recovery");
  if (isNew("email") || isNew("tokenVersion")) ended.push("email");
  if (isNew("recoveryEmail") || isNew("tokenVersion")) ended.push("recoveryEmail");
  return ended;
}

/**
 * Returns the fields of a user for the audit trail. `password` is a placeholder that only shows whether the password
 * has changed.
 */
function shown(user: User, password: string): Declared {
  const { username, name, email, recoveryEmail, mfaSecret, status } = user;
  const mfa = mfaSecret !== null;
  return { username, name, email, recovery_email: recoveryEmail, mfa, password, status };
}

/** The caller, the request and the operation of a change. `request.address` is empty if the caller is an operator. */
export interface AccountChange {
  readonly caller: UserCaller | Operator;
  readonly request: { readonly id: string; readonly address: string };
  /** Id of the operation, or name of the administration command. */
  readonly operation: string;
}

/**
 * Changes a user's account, and records the change in the audit trail. The audit trail entry belongs to no namespace. A
 * change without effect is not recorded. If the change ends the user's logins, it also ends logins that are waiting for
 * a second factor.
 * @throws UnauthenticatedError the caller's logins have ended since the request arrived
 */
export async function changeAccount(
  services: Services,
  tx: Transaction,
  { id }: Pick<User, "id">,
  data: Prisma.UserUpdateInput,
  { caller, request, operation }: AccountChange,
): Promise<void> {
  const user = await tx.user.findUniqueOrThrow({ where: { id } });
  if (caller.kind === "user") checkVersion(user, caller);
  const endsTokens = data.tokenVersion !== undefined;
  const changed = await tx.user.update({
    where: { id },
    data: { ...(endsTokens && { keptToken: null, keptUntil: null }), ...data },
  });
  if (changed.tokenVersion !== user.tokenVersion) await tx.mfaChallenge.deleteMany({ where: { userId: id } });
  const ended = endedTokens(user, changed);
  if (ended.length > 0) await tx.mailToken.deleteMany({ where: { userId: id, purpose: { in: ended } } });
  const before = shown(user, "***");
  const after = {
    ...shown(changed, changed.passwordHash === user.passwordHash ? "***" : "*** (changed)"),
    ...(changed.tokenVersion !== user.tokenVersion && { logins: "ended" }),
  };
  if (isDeepStrictEqual(before, after)) return;
  await recordChange(within(services, tx), {
    tenantId: null,
    caller,
    request,
    operation,
    object: { kind: "user", id },
    before,
    after,
  });
}
