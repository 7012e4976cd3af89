import { type PublicOperations, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { Member as Membership } from "../../db/generated/sqlite/client.ts";
import { ConflictError, ForbiddenError, NotFoundError } from "../../http/errors.ts";
import type { Handler } from "../../http/routes.ts";
import { createOnce } from "../createOnce.ts";
import { inTransaction, type Transaction } from "../transaction.ts";
import { callingUser } from "../users/callingUser.ts";
import { homeOf, sessionOf } from "../users/session.ts";
import { readNamespace } from "./namespaces.ts";

/** How long an invitation on a cloud instance waits (rules section 5.10). */
const INVITATION_LIFE = 7 * 24 * 60 * 60_000;

/**
 * One may give and take roles up to one's own; an owner is made with the namespace only (rules section 4).
 * @throws ForbiddenError
 */
function checkAuthority(own: Role, over: Role): void {
  if (over === "owner") throw new ForbiddenError("the owner's role can be neither given nor changed");
  if (!roleAtLeast(own, over)) throw new ForbiddenError(`role: ${over} is above the caller's`);
}

async function memberIn(tx: Transaction, tenantId: string, userId: string) {
  const member = await tx.member.findUnique({ where: { tenantId_userId: { tenantId, userId } } });
  if (!member) throw new NotFoundError("no such member");
  return member;
}

/** True for an invitation that nobody accepted in time; it can be made anew. */
const ranOut = ({ status, expiresAt }: Membership, now: Date): boolean =>
  status === "pending" && expiresAt !== null && expiresAt <= now;

/**
 * Adds a user at once. On a cloud instance the membership is pending; a new invitation replaces one that ran
 * out. Inviting an address that no user has is 404 there too: this service sends no mail.
 */
export const inviteMember: Handler<PublicOperations["inviteMember"]> = async (context) => {
  const { services, identity, body, creationKey } = context;
  const { tenant: tenantId, role } = identity;
  checkAuthority(role, body.role);
  const email = body.email.toLowerCase();
  const now = services.now();
  const pending = services.settings.edition === "cloud";
  const membership = {
    role: body.role,
    status: pending ? "pending" : "accepted",
    addedAt: now,
    expiresAt: pending ? new Date(now.getTime() + INVITATION_LIFE) : null,
    creationKey,
  };
  await createOnce<Membership>(context, {
    taken: "is a member already",
    find: async (tx, made) => {
      const where = { tenantId_creationKey: { tenantId, creationKey: made } };
      const known = await tx.member.findUnique({ where, include: { user: true } });
      // The answer is the namespace, in which the caller could not tell whose membership the key made.
      if (known && known.user.email !== email)
        throw new ConflictError(`Idempotency-Key: made the membership of the user ${known.userId}`);
      return known && !ranOut(known, now) ? known : null;
    },
    create: async (tx) => {
      const user = await tx.user.findUnique({ where: { email } });
      if (!user) throw new NotFoundError("email: no user has it");
      const key = { tenantId, userId: user.id };
      const known = await tx.member.findUnique({ where: { tenantId_userId: key } });
      if (known && !ranOut(known, now)) throw new ConflictError("is a member already, or has an invitation");
      return tx.member.upsert({
        where: { tenantId_userId: key },
        create: { ...key, ...membership },
        update: membership,
      });
    },
  });
  return readNamespace(services, tenantId);
};

export const updateMember: Handler<PublicOperations["updateMember"]> = async (context) => {
  const { services, identity, params, body } = context;
  const { tenant: tenantId, role } = identity;
  await inTransaction(services, async (tx) => {
    const member = await memberIn(tx, tenantId, params.uid);
    if (member.role === "owner") throw new ForbiddenError("the owner's role cannot be changed");
    if (body.role === undefined) return;
    checkAuthority(role, body.role);
    await tx.member.update({
      where: { tenantId_userId: { tenantId, userId: params.uid } },
      data: { role: body.role },
    });
  });
  return undefined;
};

export const removeMember: Handler<PublicOperations["removeMember"]> = async (context) => {
  const { services, identity, params } = context;
  const { tenant: tenantId, role } = identity;
  await inTransaction(services, async (tx) => {
    const member = await memberIn(tx, tenantId, params.uid);
    checkAuthority(role, member.role as Role);
    await tx.member.delete({ where: { tenantId_userId: { tenantId, userId: params.uid } } });
  });
  return readNamespace(services, tenantId);
};

/** Who leaves the namespace of the token gets a session for another one, or for none (rules section 5.7). */
export const leaveNamespace: Handler<PublicOperations["leaveNamespace"]> = async ({ services, identity }) => {
  const { caller, tenant: tenantId, role } = identity;
  if (role === "owner") throw new ForbiddenError("the owner cannot leave, only delete the namespace");
  await services.db.member.delete({ where: { tenantId_userId: { tenantId, userId: caller.userId } } });
  if (caller.tenant !== tenantId) return undefined;
  const user = await callingUser(services, caller);
  return sessionOf(services, user, await homeOf(services, user));
};
