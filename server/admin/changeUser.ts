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

/** A request on the administration socket that changes a user. */
interface UserCommand {
  readonly request: { readonly id: string };
  /** Username or e-mail address of the user. */
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
 * @throws NotFoundError the user does not exist
 */
async function change(
  services: Services,
  { request, user }: UserCommand,
  command: string,
  data: Prisma.UserUpdateInput,
  more?: (tx: Transaction, user: User) => Promise<unknown>,
): Promise<string> {
  const account = await findUser(services, user.toLowerCase());
  if (account === null) throw unknownUser(user);
  await inTransaction(services, async (tx) => {
    await changeAccount(services, tx, account, data, operatorChange(request, command));
    await more?.(tx, account);
  });
  return account.id;
}

/**
 * Confirms a new e-mail address that a user requested but did not confirm.
 * @returns the user's id, and the name of the user field that contains the address
 * @throws NotFoundError the user does not exist, or this address is not an unconfirmed address of the user
 * @throws ConflictError the address now belongs to a different user
 */
export async function confirmAddress(
  services: Services,
  { request, user }: UserCommand,
  address: string,
): Promise<ConfirmedAddress> {
  const account = await findUser(services, user.toLowerCase());
  if (account === null) throw unknownUser(user);
  const change = operatorChange(request, "confirm-address");
  const field = await inTransaction(services, (tx) =>
    confirmNamed(services, tx, account, address.toLowerCase(), change),
  );
  if (field === undefined)
    throw new NotFoundError(`${address} is not an unconfirmed address of ${JSON.stringify(user)}`);
  return { id: account.id, field };
}

const endTokens = { tokenVersion: { increment: 1 } };

/**
 * Sets a new password for a user. Ends all lockouts of the user, and revokes all tokens.
 * @returns the user's id
 * @throws NotFoundError the user does not exist
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
 * Disables MFA for a user. Deletes the user's recovery codes, pending logins, pending MFA resets and count of wrong
 * codes.
 * @returns the user's id
 * @throws NotFoundError the user does not exist
 */
export function disableMfa(services: Services, command: UserCommand): Promise<string> {
  const data = { mfaSecret: null, mfaLastStep: null };
  return change(services, command, "disable-mfa", data, async (tx, { id }) => {
    await forgetMfa(tx, id);
    await tx.loginFailure.deleteMany({ where: mfaCounter(id) });
  });
}

/**
 * Ends all logins of a user, including logins that wait for an MFA code. All tokens of the user become invalid.
 * @returns the user's id
 * @throws NotFoundError the user does not exist
 */
export function signOut(services: Services, command: UserCommand): Promise<string> {
  return change(services, command, "sign-out", endTokens);
}
