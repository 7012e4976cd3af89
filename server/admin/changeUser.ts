import type { Prisma, User } from "../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction } from "../db/sql/transaction.ts";
import { NotFoundError } from "../errors.ts";
import { confirmNamed } from "../features/users/account/addresses.ts";
import { type AccountChange, changeAccount } from "../features/users/account/changeAccount.ts";
import { findUser } from "../features/users/login.ts";
import { mfaCounter } from "../features/users/mfa/mfaChallenge.ts";
import { forgetMfa } from "../features/users/mfa/mfaRecovery.ts";
import { hashPassword } from "../secrets/passwords.ts";
import type { Services } from "../services.ts";
import type { ConfirmedAddress } from "./requests.ts";

/** A request at the administration socket that changes a user. */
interface UserCommand {
  readonly request: { readonly id: string };
  /** Username or e-mail. */
  readonly user: string;
}

const unknownUser = (user: string) =>
  new NotFoundError(`no user has the name or e-mail ${JSON.stringify(user)}`);

const operatorChange = ({ id }: UserCommand["request"], operation: string): AccountChange => ({
  caller: { kind: "operator" },
  request: { id, address: "" },
  operation,
});

/**
 * Changes a user, and records the change in the audit trail.
 * @returns the user's id
 * @throws NotFoundError no such user
 */
async function change(
  services: Services,
  { request, user }: UserCommand,
  command: string,
  data: Prisma.UserUpdateInput,
  more?: (tx: Transaction, user: User) => Promise<unknown>,
): Promise<string> {
  const found = await findUser(services, user.toLowerCase());
  if (found === null) throw unknownUser(user);
  await inTransaction(services, async (tx) => {
    await changeAccount(services, tx, found, data, operatorChange(request, command));
    await more?.(tx, found);
  });
  return found.id;
}

/**
 * Makes an e-mail address effective that a user asked for and has not confirmed.
 * @returns the user's id, and which of the user's two addresses it is
 * @throws NotFoundError no such user, or the address is not pending
 * @throws ConflictError another user has the address by now
 */
export async function confirmAddress(
  services: Services,
  { request, user }: UserCommand,
  address: string,
): Promise<ConfirmedAddress> {
  const found = await findUser(services, user.toLowerCase());
  if (found === null) throw unknownUser(user);
  const change = operatorChange(request, "confirm-address");
  const field = await inTransaction(services, (tx) =>
    confirmNamed(services, tx, found, address.toLowerCase(), change),
  );
  if (field === undefined)
    throw new NotFoundError(
      `${address} does not wait to be confirmed as an address of ${JSON.stringify(user)}`,
    );
  return { id: found.id, field };
}

const endTokens = { tokenVersion: { increment: 1 } };

/**
 * Gives a user a new password that works at once: the user's lockouts end, and so do all logins.
 * @returns the user's id
 * @throws NotFoundError no such user
 */
export async function resetPassword(
  services: Services,
  command: UserCommand,
  password: string,
): Promise<string> {
  const passwordHash = await hashPassword(password);
  return change(services, command, "reset-password", { passwordHash, ...endTokens }, (tx, { id }) =>
    tx.loginFailure.deleteMany({ where: { subject: id } }),
  );
}

/**
 * Turns MFA off for a user; its recovery codes, pending logins, resets and count of wrong codes are deleted.
 * @returns the user's id
 * @throws NotFoundError no such user
 */
export function disableMfa(services: Services, command: UserCommand): Promise<string> {
  const data = { mfaSecret: null, mfaLastStep: null };
  return change(services, command, "disable-mfa", data, async (tx, { id }) => {
    await forgetMfa(tx, id);
    await tx.loginFailure.deleteMany({ where: mfaCounter(id) });
  });
}

/**
 * Ends all logins of a user: every token becomes void, and so do logins that wait for a code.
 * @returns the user's id
 * @throws NotFoundError no such user
 */
export function signOut(services: Services, command: UserCommand): Promise<string> {
  return change(services, command, "sign-out", endTokens);
}
