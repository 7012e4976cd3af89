import type { additionalOperations, users } from "@gatehouse-access/sdk/contract";
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
import { isToken, makeToken, useToken, whereWaiting } from "../mails/mailTokens.ts";
import { proveOwner } from "../proveOwner.ts";
import { type AccountChange, changeAccount } from "./changeAccount.ts";

/** The columns of a user that hold addresses; a pending address's mailed token has the column's name as its purpose. */
export const ADDRESSES = ["email", "recoveryEmail"] as const;
export type AddressField = (typeof ADDRESSES)[number];
export type Addresses = { readonly [Field in AddressField]?: string };

type Pending = z.output<typeof users.pendingAddresses>;

const WIRE_NAMES = { email: "email", recoveryEmail: "recovery_email" } as const;
const CALLED = { email: "e-mail address", recoveryEmail: "recovery e-mail address" } as const;

/**
 * Changes of addresses that a user may request per window, in milliseconds: each sends mails, one of them to
 * any address.
 */
const REQUESTS = { most: 10, window: 60 * 60_000 };

const fieldsOf = (addresses: Addresses): AddressField[] =>
  ADDRESSES.filter((field) => addresses[field] !== undefined);

/** The fields whose address differs from the user's. */
export const changedAddresses = (user: User, changes: Addresses): AddressField[] =>
  fieldsOf(changes).filter((field) => changes[field] !== user[field]);

/**
 * Whether an address takes effect without any proof that the user sets it: the first recovery e-mail of a user without
 * MFA, which cannot reset anything yet. Consoles begin with it to turn MFA on.
 */
export const isFirstRecovery = (user: User, field: AddressField): boolean =>
  field === "recoveryEmail" && user.recoveryEmail === "" && user.mfaSecret === null;

/**
 * Counts a requested change of addresses.
 * @throws RateLimitedError there were too many requests
 */
export async function countRequest(services: Services, { id }: User): Promise<void> {
  const { count, endsAt } = await countInDatabase(services, `addresses asked for by ${id}`, REQUESTS.window);
  if (count > REQUESTS.most) throw tooMany(endsAt, services.now().getTime());
}

/**
 * Stores addresses until they are confirmed, as a part of a transaction. Until then they reserve nothing, and mails go
 * to the old addresses. A newer request replaces an older one.
 * @returns the response's list of pending addresses; undefined when there is nothing to confirm
 */
export async function askForAddresses(
  services: Services,
  user: User,
  addresses: Addresses,
): Promise<Pending | undefined> {
  const fields = fieldsOf(addresses);
  if (fields.length === 0) return undefined;
  for (const field of fields) {
    const address = addresses[field] ?? "";
    const token = await makeToken(services, user.id, field, address);
    await queueMail(services, confirmationMail(services, user, field, address, token));
  }
  const what = `Somebody who is logged in to your account asked for another ${namesOf(fields)}`;
  await tellOldAddresses(
    services,
    user,
    `${what}. Until it is confirmed with your password, nothing changes.`,
  );
  const pending = fields.map((field) => WIRE_NAMES[field]);
  const message = `${pending.join(", ")}: takes effect when it is confirmed: by the link that is mailed to it, with current_password, or by those who run the service`;
  return { message, pending };
}

/** Mails to all addresses of a user that MFA is on, as a part of a transaction: a stolen login could turn it on. */
export const tellOfMfa = (services: Services, user: User): Promise<void> =>
  tellOldAddresses(services, user, "Multi-factor authentication was turned on for your account.");

/** Mails to a user's previous addresses that some have changed, as a part of a transaction. */
export async function tellOfChange(
  services: Services,
  user: User,
  fields: readonly AddressField[],
): Promise<void> {
  if (fields.length === 0) return;
  await tellOldAddresses(services, user, `The ${namesOf(fields)} of your account was changed.`);
}

const namesOf = (fields: readonly AddressField[]): string =>
  fields.map((field) => CALLED[field]).join(" and ");

// No mail repeats the new address: a stranger may have chosen it.
async function tellOldAddresses(services: Services, user: User, what: string): Promise<void> {
  const text = `${what}\n\nIf it was not you, somebody else is logged in to your account: set a new password, which ends all other logins, and ask those who run the service if you cannot.\n`;
  for (const to of new Set([user.email, user.recoveryEmail])) {
    if (to !== "") await queueMail(services, { to, subject: "A change of your account", text });
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
    text: `This address was given as the ${CALLED[field]} of an account. To confirm it, open this page within 24 hours, and give the password of the account:\n\n${link}\n\nIf it was not you, leave this mail alone: nothing happens then.\n`,
  };
}

/**
 * Gives a user a pending address, by the token that was mailed to it and the user's password. The token alone is not
 * enough: somebody with a stolen login could have given a mailbox of their own.
 */
export const confirmAddress: Handler<typeof additionalOperations.confirmAddress> = async (context) => {
  const { services, body, request, signal } = context;
  const { id, token } = body;
  const refused = () => new UnauthenticatedError("id, token: wrong, used or too old");
  const field = await waitingField(services, id, token);
  const user = field && (await services.db.user.findUnique({ where: { id } }));
  if (!field || !user) throw refused();
  if (user.origin !== "local")
    throw new ForbiddenError("the account has no password here: those who run the service can confirm it");
  const proof = await proveOwner(services, user, body, signal);
  if (proof === "wrong password") throw new InvalidError("password: is wrong");
  if (proof === "wrong code") throw new InvalidError("code: is wrong or used");
  if (proof === "no code") throw new InvalidError("code: must be given: the account has MFA");
  await inTransaction(services, async (tx) => {
    const address = await useToken(services, tx, id, field, token);
    if (address === undefined) throw refused();
    const change = { caller: actingUser(user), request, operation: "confirmAddress" };
    await setAddresses(services, tx, user, { [field]: address }, change);
  });
  return undefined;
};

async function waitingField(
  services: Services,
  id: string,
  token: string,
): Promise<AddressField | undefined> {
  for (const field of ADDRESSES) if (await isToken(services, id, field, token)) return field;
  return undefined;
}

/**
 * Gives a user a pending address, as a part of a transaction. The caller names the address, because somebody else may
 * have requested another one meanwhile.
 * @param address in lower case
 * @returns the field of the address; undefined if the address is not pending
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
 * Checks, as a part of a transaction, that the user still has the addresses and the second factor by which the request
 * was authorized.
 * @throws BusyError they have changed
 */
export async function checkAsJudged(tx: Transaction, user: User): Promise<void> {
  const { id, email, recoveryEmail, mfaSecret } = user;
  if ((await tx.user.count({ where: { id, email, recoveryEmail, mfaSecret } })) === 0)
    throw new BusyError("the account was changed meanwhile, try again", { "Retry-After": "1" });
}

/**
 * @throws ConflictError another user has the address by now, or it became the user's other address
 * @throws BusyError see {@link checkAsJudged}
 */
async function setAddresses(
  services: Services,
  tx: Transaction,
  user: User,
  addresses: Addresses,
  change: AccountChange,
): Promise<void> {
  await checkAsJudged(tx, user);
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
  await tellOfChange(within(services, tx), user, fieldsOf(addresses));
}
