import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { DAY } from "@gatehouse-access/sdk/times";
import { recordChange } from "../../../changes/recordChange.ts";
import type { User } from "../../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import { isDatabaseError, TakenFieldsError, UnauthenticatedError } from "../../../errors.ts";
import type { Context, Handler } from "../../../http/handler.ts";
import { hashPassword } from "../../../secrets/passwords.ts";
import type { Services } from "../../../services.ts";
import { acceptMembership, openInvitation } from "../../namespaces/invitations.ts";
import { queueAccountMail } from "../../outbox/outbox.ts";
import { actingUser } from "../callingUser.ts";
import { homeOf, sessionOf } from "../session.ts";
import { newUserId } from "./createUser.ts";

type RegisterContext = Context<PublicOperations["registerUser"]>;
type Body = RegisterContext["body"];

/**
 * Returns the invitation of a user who is registering. Returns null if a cloud instance receives a registration without
 * an invitation. Other editions require an invitation, because it is the only proof of the e-mail address.
 * @throws UnauthenticatedError the sig does not belong to an open invitation of this address, or a required sig is
 *   missing
 */
async function invitationOf(services: Services, { sig, email }: Body) {
  if (!sig && services.settings.edition === "cloud") return null;
  const invitation = await openInvitation(services, sig ?? "");
  if (invitation?.user.status === "invited" && invitation.user.email === email.toLowerCase())
    return invitation;
  throw new UnauthenticatedError(
    "sig: no open invitation of this e-mail address has this signature; use the link from the invitation",
  );
}

/**
 * Returns the user with the status `invited` who has the e-mail address. Returns null if no user has this address. The
 * registration completes the account of the returned user.
 * @throws TakenFieldsError a different user has the name or the address
 */
async function invitedUser(services: Services, body: Body): Promise<User | null> {
  const { user } = services.db;
  const known = await user.findUnique({ where: { email: body.email.toLowerCase() } });
  const sameName = await user.findUnique({ where: { username: body.username.toLowerCase() } });
  const taken = [
    ...(sameName ? ["username"] : []),
    ...(known && known.status !== "invited" ? ["email"] : []),
  ];
  if (taken.length > 0) throw new TakenFieldsError(taken);
  return known;
}

/**
 * Adds the user, or completes the account of the invited user. Call this function in a transaction. A mailed sig
 * confirms the e-mail address. A sig from a shared link confirms the address only in the community and enterprise
 * editions, because these editions have no other proof.
 */
async function register(services: Services, context: RegisterContext, passwordHash: string): Promise<User> {
  const { body, request } = context;
  const cloud = services.settings.edition === "cloud";
  const invitation = await invitationOf(services, body);
  const invited = await invitedUser(services, body);
  const confirmed = invitation !== null && (invitation.invitationMailed || !cloud);
  const data = {
    name: body.name,
    username: body.username.toLowerCase(),
    passwordHash,
    emailMarketing: body.email_marketing,
    status: confirmed ? "confirmed" : "not-confirmed",
    createdAt: services.now(),
  };
  const user = invited
    ? await services.db.user.update({ where: { id: invited.id }, data })
    : await services.db.user.create({ data: { ...data, id: newUserId(), email: body.email.toLowerCase() } });
  const { id, username, name, email, status } = user;
  const caller = actingUser(user);
  const operation = "registerUser";
  // On a cloud instance, the user accepts the invitation in a separate request (acceptInvite).
  if (invitation && !cloud) await acceptMembership(services, invitation, { caller, request, operation });
  if (!confirmed) await queueAccountMail(services, { purpose: "activation", account: username });
  await recordChange(services, {
    tenantId: null,
    caller,
    request,
    operation,
    object: { kind: "user", id },
    before: null,
    after: { username, name, email, status },
  });
  return user;
}

/** Registers a new account (rules section 11). */
export const registerUser: Handler<PublicOperations["registerUser"]> = async (context) => {
  const { services, body, signal } = context;
  await invitationOf(services, body);
  await invitedUser(services, body);
  const passwordHash = await hashPassword(body.password, signal);
  let user: User;
  try {
    user = await inTransaction(services, (tx) => register(within(services, tx), context, passwordHash));
  } catch (error) {
    // A concurrent request may have registered the username or the address after the check.
    if (isDatabaseError(error, "P2002")) await invitedUser(services, body);
    throw error;
  }
  return user.status === "confirmed"
    ? sessionOf(services, user, await homeOf(services, user), null)
    : undefined;
};

/**
 * Maximum age of an unconfirmed account, in milliseconds. The age is limited because any client can create such
 * accounts, and each of them occupies a username.
 */
const WAITING = 7 * DAY;

/**
 * Deletes expired mail tokens, accounts that were not confirmed within a week, and invited users whose invitation no
 * longer exists. Accounts with a membership or a namespace are kept.
 */
export async function forgetAccounts({ db, now }: Pick<Services, "db" | "now">): Promise<void> {
  const time = now();
  await db.mailToken.deleteMany({ where: { expiresAt: { lte: time } } });
  const withoutNamespaces = { memberships: { none: {} }, owned: { none: {} } };
  await db.user.deleteMany({
    where: {
      ...withoutNamespaces,
      status: "not-confirmed",
      createdAt: { lte: new Date(time.getTime() - WAITING) },
      // An account with a valid mail token is kept, because the user can still confirm it.
      mailTokens: { none: {} },
    },
  });
  await db.user.deleteMany({ where: { ...withoutNamespaces, status: "invited" } });
}
