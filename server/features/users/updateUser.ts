import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { User } from "../../db/generated/sqlite/client.ts";
import { InvalidFieldsError, isDatabaseError, TakenFieldsError } from "../../http/errors.ts";
import type { Context, Handler } from "../../http/routes.ts";
import { hashPassword, verifyPassword } from "../../passwords.ts";
import type { Services } from "../../services.ts";
import { inTransaction } from "../transaction.ts";
import { callingUser } from "./callingUser.ts";
import { changeAccount } from "./changeAccount.ts";
import { countFailure, forgetFailures, lockEnd, lockedOut } from "./lockout.ts";

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

/** Changes what was sent and is not empty (rules section 11). */
function changesOf(body: Body): Changes {
  return {
    ...(body.name && { name: body.name }),
    ...(body.username && { username: body.username.toLowerCase() }),
    ...(body.email && { email: body.email.toLowerCase() }),
    ...(body.recovery_email && { recoveryEmail: body.recovery_email.toLowerCase() }),
  };
}

/**
 * Refuses a recovery address that is the e-mail address, the old or the new one: it must still be there when
 * that one is lost.
 */
function checkRecoveryEmail(user: User, changes: Changes): void {
  const recovery = changes.recoveryEmail ?? user.recoveryEmail;
  const addresses = [changes.email ?? user.email, ...(changes.recoveryEmail ? [user.email] : [])];
  if (recovery !== "" && addresses.includes(recovery))
    throw new InvalidFieldsError(["email", "recovery_email"]);
}

/**
 * Whether it is the user's password. Wrong ones are counted as wrong logins are, from wherever they come: with a stolen token the password could be
 * guessed here.
 * @throws LockedOutError too many wrong ones
 */
export async function isCurrentPassword(
  services: Services,
  user: User,
  password: string,
  signal: AbortSignal,
): Promise<boolean> {
  const key = { source: "password", subject: user.id };
  const locked = await lockEnd(services, key);
  if (locked) throw lockedOut(locked);
  if (await verifyPassword(password, user.passwordHash, signal)) {
    await forgetFailures(services, key);
    return true;
  }
  const end = await countFailure(services, key);
  if (end) throw lockedOut(end);
  return false;
}

async function checkPassword(services: Services, user: User, body: Body, signal: AbortSignal): Promise<void> {
  if (!body.password) return;
  if (!body.current_password) throw new InvalidFieldsError(["current_password"]);
  if (await isCurrentPassword(services, user, body.current_password, signal)) return;
  throw new InvalidFieldsError(["password"]);
}

/** Which of the changed names belong to another user. */
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
 * Changes the calling user. A new password makes all tokens void, the caller's own too: whoever has a copy of one is
 * out.
 * @param operation id of the operation, for the audit trail
 * @throws InvalidFieldsError, TakenFieldsError
 */
export async function changeUser(context: ChangeContext, operation: string): Promise<undefined> {
  const { services, identity, body, signal, request } = context;
  const user = await callingUser(services, identity);
  const changes = changesOf(body);
  checkRecoveryEmail(user, changes);
  await checkPassword(services, user, body, signal);
  const taken = await takenFields(services, user, changes);
  if (taken.length > 0) throw new TakenFieldsError(taken);
  const passwordHash = body.password ? await hashPassword(body.password, signal) : undefined;
  try {
    const data = { ...changes, ...(passwordHash && { passwordHash, tokenVersion: { increment: 1 } }) };
    await inTransaction(services, (tx) =>
      changeAccount(services, tx, user, data, { caller: identity, request, operation }),
    );
  } catch (error) {
    if (!isDatabaseError(error, "P2002")) throw error;
    // Somebody took the name since it was looked for.
    throw new TakenFieldsError(await takenFields(services, user, changes));
  }
  return undefined;
}

export const updateUser: Handler<PublicOperations["updateUser"]> = (context) =>
  changeUser(context, "updateUser");
