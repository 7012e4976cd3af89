import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { declaredColumn } from "../../changes/managedObject.ts";
import type { Member } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import { ConflictError, ForbiddenError, NotFoundError } from "../../errors.ts";
import { hasMembershipEnded, isMember } from "../../http/access/membership.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { digestOf, isSameSecret } from "../../secrets/digest.ts";
import type { SqlServices } from "../../services.ts";
import { newEnd } from "../fields.ts";
import { invitationLink } from "./invitationLink.ts";
import { acceptMembership, createInvitation, isOpen, openInvitation, putMember } from "./invitations.ts";
import { checkAuthority } from "./members.ts";

/**
 * Returns an invitation link to the caller. The link begins with the address that the caller used to reach the service.
 * An existing user becomes a member immediately if the edition has no `acceptInvite` (rules section 5.9). The link then
 * opens the login page. In all other cases, the link contains the secret of the invitation (`sig`), which the invited
 * person needs to become a member.
 */
export const generateInvitationLink: ObjectWrite<PublicOperations["generateInvitationLink"], Member> = async (
  context,
) => {
  const { services, identity, body, request, declaration } = context;
  const { tenant: tenantId, role: own } = identity;
  checkAuthority(own, body.role);
  const { origin } = request.origin;
  const email = body.email.toLowerCase();
  const user = await findRow(services.db, "User", { email });
  const known = user && (await findRow(services.db, "Member", { tenantId, userId: user.id }));
  const membership = {
    role: body.role,
    accessExpiresAt: offeredEnd(services, body.access_expires_at, known),
    creationKey: null,
    declaredBy: declaredColumn(declaration, services.now()),
  };
  if (services.settings.edition === "cloud" || user === null || user.status === "invited") {
    const input = { ...membership, tenantId, email, mailed: false };
    return { link: invitationLink(origin, await createInvitation(services, input), email) };
  }
  if (known && isMember(known, services.accessTime()))
    throw new ConflictError("email: the user with this address is already a member");
  await putMember(services, { tenantId, userId: user.id }, membership);
  return { link: new URL("/login", origin).href };
};

/**
 * Returns the expiry time of the membership that a link offers. If the request has no expiry time, the link keeps the
 * expiry time that an open invitation already offers.
 */
function offeredEnd(
  services: SqlServices,
  requested: string | null | undefined,
  known: Member | null,
): Date | null {
  if (requested !== undefined) return newEnd(services, "access_expires_at", requested);
  return known && !hasMembershipEnded(known, services.accessTime()) ? known.accessExpiresAt : null;
}

export const lookupUserStatus: Handler<PublicOperations["lookupUserStatus"]> = async ({
  services,
  params,
  query,
}) => {
  const member = await services.db.member.findUnique({
    where: { tenantId_userId: { tenantId: params.tenant, userId: params.id } },
    include: { user: { select: { status: true } } },
  });
  if (!member?.invitation || !isOpen(member, services)) {
    throw new NotFoundError("the user has no open invitation to this namespace");
  }
  if (!isSameSecret(member.invitation, digestOf(query.sig)))
    throw new ForbiddenError(
      "sig: the signature does not belong to this invitation; use the link from the invitation",
    );
  return { status: member.user.status as "invited" | "not-confirmed" | "confirmed" };
};

export const acceptInvite: Handler<PublicOperations["acceptInvite"]> = async (context) => {
  const { services, identity, params, body, request } = context;
  const { tenant: tenantId } = params;
  const { userId } = identity;
  await inTransaction(services, async (tx) => {
    const inside = within(services, tx);
    const addressed = await openInvitation(inside, body.sig);
    if (addressed?.tenantId === tenantId && addressed.userId !== userId) {
      throw new ForbiddenError("sig belongs to another user's invitation");
    }
    const member = await tx.member.findUnique({ where: { tenantId_userId: { tenantId, userId } } });
    if (!member || !isOpen(member, services)) {
      throw new NotFoundError("the caller has no open invitation to this namespace");
    }
    if (addressed?.tenantId !== tenantId)
      throw new ForbiddenError(
        "sig: the signature does not belong to this invitation; use the link from the invitation",
      );
    await acceptMembership(inside, member, { caller: identity, request, operation: "acceptInvite" });
  });
  return undefined;
};
