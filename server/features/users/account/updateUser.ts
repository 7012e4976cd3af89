import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Prisma, User } from "../../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import {
  ForbiddenError,
  InvalidError,
  InvalidFieldsError,
  isDatabaseError,
  TakenFieldsError,
} from "../../../errors.ts";
import type { UserCaller } from "../../../http/access/identity.ts";
import { KEPT_LIFE } from "../../../http/access/tokens.ts";
import type { Context, Handler } from "../../../http/handler.ts";
import { hashPassword } from "../../../secrets/passwords.ts";
import type { Services } from "../../../services.ts";
import { callingUser } from "../callingUser.ts";
import { isCurrentPassword, proveOwner } from "../proveOwner.ts";
import {
  type AddressField,
  changedAddresses,
  checkUnchanged,
  countRequest,
  isFirstRecovery,
  notifyOfChange,
  requestAddresses,
} from "./addresses.ts";
import { changeAccount } from "./changeAccount.ts";

type Body = Context<PublicOperations["updateUser"]>["body"];
type ChangeContext = Pick<
  Context<PublicOperations["updateUser"]>,
  "services" | "identity" | "body" | "signal" | "request"
>;

interface Changes {
  name?: string;
  username?: string;
  email?: string;
  recoveryEmail?: string;
}

/** Returns the changes in a request: all fields that are not empty (rules section 11). */
function changesOf(body: Body): Changes {
  return {
    ...(body.name && { name: body.name }),
    ...(body.username && { username: body.username.toLowerCase() }),
    ...(body.email && { email: body.email.toLowerCase() }),
    ...(body.recovery_email && { recoveryEmail: body.recovery_email.toLowerCase() }),
  };
}

/**
 * Rejects a recovery address that equals the user's old or new e-mail address. The addresses must differ, because the
 * recovery address is needed when the user can no longer read mails to the e-mail address.
 */
function checkRecoveryEmail(user: User, changes: Changes): void {
  const recovery = changes.recoveryEmail ?? user.recoveryEmail;
  const addresses = [changes.email ?? user.email, ...(changes.recoveryEmail ? [user.email] : [])];
  if (recovery !== "" && addresses.includes(recovery))
    throw new InvalidFieldsError(["email", "recovery_email"]);
}

/**
 * Returns true if the request proves that it comes from the user, and not from an attacker with a stolen token.
 * @throws InvalidFieldsError a proof is missing or wrong
 */
async function isProven(services: Services, user: User, body: Body, signal: AbortSignal): Promise<boolean> {
  const { password, current_password: current, code } = body;
  if (!current) {
    if (password || code) throw new InvalidFieldsError(["current_password"]);
    return false;
  }
  const proof = await proveOwner(services, user, { password: current, code }, signal);
  if (proof === "wrong password") throw new InvalidFieldsError([password ? "password" : "current_password"]);
  if (proof === "wrong code") throw new InvalidFieldsError(["code"]);
  return proof === "proved";
}

/**
 * Returns the column values for a new password. All other tokens of the user become invalid, so that stolen tokens are
 * useless. The token of the request stays valid for at most an hour (rules D48), because the client continues to use
 * it.
 */
function newPassword({ now }: Services, { token }: UserCaller, passwordHash: string): Prisma.UserUpdateInput {
  const data = { passwordHash, tokenVersion: { increment: 1 } };
  if (token === null) return data;
  const until = Math.min(token.endsAt.getTime(), now().getTime() + KEPT_LIFE);
  return { ...data, keptToken: token.id, keptUntil: new Date(until) };
}

/** Returns the changed fields whose new values belong to a different user. */
async function takenFields(services: Services, user: User, changes: Changes): Promise<string[]> {
  const taken: string[] = [];
  for (const field of ["username", "email"] as const) {
    const value = changes[field];
    if (value === undefined || value === user[field]) continue;
    const where = field === "email" ? { email: value } : { username: value };
    if (await services.db.user.findUnique({ where, select: { id: true } })) taken.push(field);
  }
  return taken;
}

/**
 * Changes the calling user. For a new password, see {@link newPassword}. If the request does not prove the user's
 * identity, new addresses are pending until the user confirms them (rules D47).
 * @param operation id of the operation, for the audit trail
 * @returns the pending addresses; undefined if there are none
 * @throws InvalidFieldsError, TakenFieldsError
 */
async function changeUser(context: ChangeContext, operation: string) {
  const { services, identity, body, signal, request } = context;
  const user = await callingUser(services, identity);
  const changes = changesOf(body);
  checkRecoveryEmail(user, changes);
  const addresses = changedAddresses(user, changes);
  const proven = (body.password || addresses.length > 0) && (await isProven(services, user, body, signal));
  const taken = await takenFields(services, user, changes);
  if (taken.length > 0) throw new TakenFieldsError(taken);
  const passwordHash = body.password ? await hashPassword(body.password, signal) : undefined;
  const waiting = proven ? [] : addresses.filter((field) => !isFirstRecovery(user, field));
  if (waiting.length > 0) await countRequest(services, user);
  try {
    return await inTransaction(services, async (tx) => {
      const inside = within(services, tx);
      if (addresses.length > 0) await checkUnchanged(tx, user);
      const data = {
        ...without(changes, waiting),
        ...(passwordHash && newPassword(services, identity, passwordHash)),
      };
      await changeAccount(services, tx, user, data, { caller: identity, request, operation });
      const done = addresses.filter((field) => !waiting.includes(field));
      await notifyOfChange(inside, user, done);
      return requestAddresses(
        inside,
        user,
        Object.fromEntries(waiting.map((field) => [field, changes[field]])),
      );
    });
  } catch (error) {
    if (!isDatabaseError(error, "P2002")) throw error;
    // A different user took the username or the address after the check.
    throw new TakenFieldsError(await takenFields(services, user, changes));
  }
}

function without(changes: Changes, fields: readonly AddressField[]): Changes {
  return Object.fromEntries(
    Object.entries(changes).filter(([name]) => !fields.some((field) => field === name)),
  );
}

export const updateUser: Handler<PublicOperations["updateUser"]> = (context) =>
  changeUser(context, "updateUser");

/**
 * Checks that the path contains the caller's id.
 * @throws ForbiddenError the path contains the id of a different user (rules D40)
 */
function checkOwnId({ userId }: UserCaller, id: string): void {
  if (userId !== id) throw new ForbiddenError("id: users can change only their own account");
}

export const updateUserData: Handler<PublicOperations["updateUserData"]> = async (context) => {
  checkOwnId(context.identity, context.params.id);
  return changeUser(context, "updateUserData");
};

export const updateUserPassword: Handler<PublicOperations["updateUserPassword"]> = async (context) => {
  const { services, identity, params, body, request, signal } = context;
  const { current_password: current, new_password: password } = body;
  checkOwnId(identity, params.id);
  if (current === password) throw new InvalidError("new_password must differ from current_password");
  const user = await callingUser(services, identity);
  if (!(await isCurrentPassword(services, user, current, signal))) {
    throw new InvalidError("current_password: the password is wrong");
  }
  const passwordHash = await hashPassword(password, signal);
  const data = newPassword(services, identity, passwordHash);
  await inTransaction(services, (tx) =>
    changeAccount(services, tx, user, data, { caller: identity, request, operation: "updateUserPassword" }),
  );
  return undefined;
};
