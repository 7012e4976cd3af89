import type { additionalOperations, users } from "@gatehouse-access/sdk/contract";
import { HOUR } from "@gatehouse-access/sdk/times";
import type { z } from "zod";
import type { User } from "../../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction, within } from "../../../db/sql/transaction.ts";
import {
  BusyError,
  ConflictError,
  ForbiddenError,
  InvalidError,
  isDatabaseError,
  UnauthenticatedError,
} from "../../../errors.ts";
import type { Handler } from "../../../http/handler.ts";
import { tooMany } from "../../../http/limits/limitInMemory.ts";
import { countInDatabase } from "../../../http/limits/rateLimitCounts.ts";
import type { Mail } from "../../../mail/mail.ts";
import type { Services } from "../../../services.ts";
import { pageLink } from "../../outbox/links.ts";
import { queueMail } from "../../outbox/outbox.ts";
import { actingUser } from "../callingUser.ts";
import { createToken, isToken, useToken, whereWaiting } from "../mails/mailTokens.ts";
import { proveOwner } from "../proveOwner.ts";
import { type AccountChange, changeAccount } from "./changeAccount.ts";

/**
 * The columns of a user that contain addresses. For a pending address, the name of the column is also the purpose of
 * the mailed confirmation token.
 */
const ADDRESSES = ["email", "recoveryEmail"] as const;
export type AddressField = (typeof ADDRESSES)[number];
type Addresses = { readonly [Field in AddressField]?: string };

type Pending = z.output<typeof users.pendingAddresses>;

const WIRE_NAMES = { email: "email", recoveryEmail: "recovery_email" } as const;
const LABELS = { email: "e-mail address", recoveryEmail: "recovery e-mail address" } as const;

/**
 * Maximum number of address changes that a user may request in a time window, and the length of the window in
 * milliseconds. The number is limited, because each request can send a mail to any address.
 */
const REQUESTS = { most: 10, window: HOUR };

const fieldsOf = (addresses: Addresses): AddressField[] =>
  ADDRESSES.filter((field) => addresses[field] !== undefined);

/** Returns the fields whose new address differs from the user's current address. */
export const changedAddresses = (user: User, changes: Addresses): AddressField[] =>
  fieldsOf(changes).filter((field) => changes[field] !== user[field]);

/**
 * Returns true if an address takes effect without a proof of the user's identity. This is the case for the first
 * recovery e-mail address of a user without MFA, because this address cannot reset MFA yet. Consoles set the recovery
 * address before they turn on MFA.
 */
export const isFirstRecovery = (user: User, field: AddressField): boolean =>
  field === "recoveryEmail" && user.recoveryEmail === "" && user.mfaSecret === null;

/**
 * Counts a requested change of addresses.
 * @throws RateLimitedError the user has requested too many address changes
 */
export async function countRequest(services: Services, { id }: User): Promise<void> {
  const { count, endsAt } = await countInDatabase(services, `addresses requested by ${id}`, REQUESTS.window);
  if (count > REQUESTS.most) throw tooMany(endsAt, services.now().getTime());
}

/**
 * Stores pending addresses, and queues the confirmation mails. Call this function in a transaction. Until the user
 * confirms a new address, other users can use it too, and all other mails are sent to the old address. A new request
 * replaces an earlier request.
 * @returns the list of pending addresses for the response; undefined if no confirmation is needed
 */
export async function requestAddresses(
  services: Services,
  user: User,
  addresses: Addresses,
): Promise<Pending | undefined> {
  const fields = fieldsOf(addresses);
  if (fields.length === 0) return undefined;
  for (const field of fields) {
    const address = addresses[field] ?? "";
    const token = await createToken(services, user.id, field, address);
    await queueMail(services, confirmationMail(services, user, field, address, token));
  }
  const event = `A new ${labelsOf(fields)} was requested for your account`;
  await notifyOldAddresses(
    services,
    user,
    `${event}. The change takes effect only after confirmation with your password.`,
  );
  const pending = fields.map((field) => WIRE_NAMES[field]);
  const message =
    `${pending.join(", ")}: takes effect after confirmation. To confirm the address, open the link in the mail to it, ` +
    "send the request again with current_password, or contact the operator of the service";
  return { message, pending };
}

/**
 * Queues a mail to all addresses of a user after MFA was turned on, because an attacker with a stolen login may have
 * turned it on. Call this function in a transaction.
 */
export const notifyOfMfa = (services: Services, user: User): Promise<void> =>
  notifyOldAddresses(services, user, "Multi-factor authentication was turned on for your account.");

/**
 * Queues a mail to a user's previous addresses after the addresses were changed. Call this function in a transaction.
 */
export async function notifyOfChange(
  services: Services,
  user: User,
  fields: readonly AddressField[],
): Promise<void> {
  if (fields.length === 0) return;
  await notifyOldAddresses(services, user, `The ${labelsOf(fields)} of your account was changed.`);
}

const labelsOf = (fields: readonly AddressField[]): string =>
  fields.map((field) => LABELS[field]).join(" and ");

// Mails to the old addresses never contain the new address, because an attacker may have chosen it.
async function notifyOldAddresses(services: Services, user: User, event: string): Promise<void> {
  const text =
    `${event}\n\nIf you did not do this, another person is logged in to your account. Set a new password, which ends ` +
    "all other logins. If you cannot set a new password, contact the operator of the service.\n";
  for (const to of new Set([user.email, user.recoveryEmail])) {
    if (to !== "") await queueMail(services, { to, subject: "Change of your account", text });
  }
}

function confirmationMail(
  services: Services,
  { id }: User,
  field: AddressField,
  to: string,
  token: string,
): Mail {
  const link = pageLink(services, "/confirm-address", { id, token });
  return {
    to,
    subject: "Confirm your e-mail address",
    text:
      `This address was entered as the ${LABELS[field]} of an account. To confirm it, open this page within 24 hours ` +
      `and enter the password of the account:\n\n${link}\n\nIf you did not request this, ignore this mail.\n`,
  };
}

/**
 * Confirms a pending address. The request must contain the user's password, and the token that was mailed to this
 * address. The token alone is not sufficient, because an attacker with a stolen login could have requested a change to
 * an address of the attacker.
 */
export const confirmAddress: Handler<typeof additionalOperations.confirmAddress> = async (context) => {
  const { services, body, request, signal } = context;
  const { id, token } = body;
  const invalidToken = () => new UnauthenticatedError("id, token: wrong, used or expired");
  const field = await pendingField(services, id, token);
  const user = field && (await services.db.user.findUnique({ where: { id } }));
  if (!field || !user) throw invalidToken();
  if (user.origin !== "local")
    throw new ForbiddenError(
      "the account has no password on this service: ask the operator of the service to confirm the address",
    );
  const proof = await proveOwner(services, user, body, signal);
  if (proof === "wrong password") throw new InvalidError("password: the password is wrong");
  if (proof === "wrong code") throw new InvalidError("code: the code is wrong or already used");
  if (proof === "no code") throw new InvalidError("code: the account has MFA, so the request needs a code");
  await inTransaction(services, async (tx) => {
    const address = await useToken(services, tx, id, field, token);
    if (address === undefined) throw invalidToken();
    const change = { caller: actingUser(user), request, operation: "confirmAddress" };
    await setAddresses(services, tx, user, { [field]: address }, change);
  });
  return undefined;
};

async function pendingField(
  services: Services,
  id: string,
  token: string,
): Promise<AddressField | undefined> {
  for (const field of ADDRESSES) if (await isToken(services, id, field, token)) return field;
  return undefined;
}

/**
 * Confirms a pending address without a token. Call this function in a transaction. The caller specifies the address,
 * because a newer request may have replaced the pending address.
 * @param address in lower case
 * @returns the column of the address; undefined if the address is not pending
 * @throws ConflictError, BusyError see {@link setAddresses}
 */
export async function confirmNamed(
  services: Services,
  tx: Transaction,
  user: User,
  address: string,
  change: AccountChange,
): Promise<AddressField | undefined> {
  const row = await tx.mailToken.findFirst({
    where: { ...whereWaiting(services, user.id, ADDRESSES), address },
    select: { purpose: true },
  });
  const field = ADDRESSES.find((name) => name === row?.purpose);
  if (field === undefined) return undefined;
  await setAddresses(services, tx, user, { [field]: address }, change);
  return field;
}

/**
 * Checks that the user's addresses and second factor have not changed since the request was authorized. Call this
 * function in a transaction.
 * @throws BusyError the addresses or the second factor have changed
 */
export async function checkUnchanged(tx: Transaction, user: User): Promise<void> {
  const { id, email, recoveryEmail, mfaSecret } = user;
  if ((await tx.user.count({ where: { id, email, recoveryEmail, mfaSecret } })) === 0)
    throw new BusyError("the account was changed in the meantime: try again", { "Retry-After": "1" });
}

/**
 * Changes the addresses of a user.
 * @throws ConflictError the address belongs to a different user, or the e-mail address and the recovery address would
 *   be equal
 * @throws BusyError see {@link checkUnchanged}
 */
async function setAddresses(
  services: Services,
  tx: Transaction,
  user: User,
  addresses: Addresses,
  change: AccountChange,
): Promise<void> {
  await checkUnchanged(tx, user);
  const { email, recoveryEmail } = { ...user, ...addresses };
  if (email === recoveryEmail)
    throw new ConflictError("the e-mail and the recovery e-mail would be the same");
  const holder = await tx.user.findUnique({ where: { email }, select: { id: true } });
  if (holder && holder.id !== user.id) throw new ConflictError("the address belongs to another user");
  try {
    await changeAccount(services, tx, user, addresses, change);
  } catch (error) {
    throw isDatabaseError(error, "P2002") ? new ConflictError("the address belongs to another user") : error;
  }
  await notifyOfChange(within(services, tx), user, fieldsOf(addresses));
}
