import { type PublicOperations, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { declaredColumn } from "../../changes/managedObject.ts";
import { createOnce } from "../../changes/writeObject.ts";
import type { Member as Membership } from "../../db/generated/sqlite/client.ts";
import { deleteRows, findRow, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, sql } from "../../db/sql/sql.ts";
import { ConflictError, ForbiddenError, NotFoundError } from "../../errors.ts";
import { membershipLasts } from "../../http/access/membership.ts";
import type { ObjectWrite } from "../../http/handler.ts";
import type { SqlServices } from "../../services.ts";
import { newEnd, updatedEnd } from "../fields.ts";
import { queueMail } from "../outbox/outbox.ts";
import { callingUser } from "../users/callingUser.ts";
import { homeOf, sessionOf } from "../users/session.ts";
import { invitationMail } from "./invitationLink.ts";
import { createInvitation, isExpired, putMember } from "./invitations.ts";
import { readNamespace } from "./namespaces.ts";

/**
 * Checks that a member may grant or revoke a role. Members can grant and revoke roles up to their own role, except the
 * role `owner`. The owner of a namespace is always the user who created it (rules section 4).
 * @throws ForbiddenError the role is higher than the caller's role, or is the role `owner`
 */
export function checkAuthority(own: Role, over: Role): void {
  if (over === "owner") throw new ForbiddenError("the owner's role can be neither granted nor changed");
  if (!roleAtLeast(own, over)) throw new ForbiddenError(`role: ${over} is higher than the caller's role`);
}

type NewMembership = Pick<Membership, "accessExpiresAt" | "creationKey" | "declaredBy"> & {
  readonly role: Role;
};

/**
 * Adds the user who has the e-mail address as a member. The membership takes effect immediately.
 * @throws NotFoundError no user has registered with the address
 * @throws ConflictError the user is already a member
 */
async function addMember(
  services: SqlServices,
  tenantId: string,
  email: string,
  membership: NewMembership,
): Promise<Membership> {
  const known = await findAddressee(services, tenantId, email);
  if (!known || known.userStatus === "invited") throw new NotFoundError("email: no user has this address");
  checkAbsent(services, known);
  return putMember(services, { tenantId, userId: known.userId }, membership);
}

/**
 * Invites the user who has the e-mail address, and sends the invitation link by mail.
 * @throws ConflictError the user is already a member, or has an open invitation
 */
async function mailInvitation(
  services: SqlServices,
  tenantId: string,
  email: string,
  membership: NewMembership,
): Promise<Membership> {
  checkAbsent(services, await findAddressee(services, tenantId, email));
  const invitation = await createInvitation(services, { ...membership, tenantId, email, mailed: true });
  await queueMail(services, await invitationMail(services, invitation, email));
  return invitation.member;
}

/**
 * A user that was found by e-mail address. `userStatus` is the status of the user, and `status` is the status of the
 * membership. `status` is null if the user has no membership, or if the membership has ended.
 */
interface Addressee {
  readonly userId: string;
  readonly userStatus: string;
  readonly status: string | null;
  readonly expiresAt: Date | null;
}

/** Returns the user who has the e-mail address. Returns undefined if there is no such user. */
async function findAddressee(
  { db, accessTime }: SqlServices,
  tenantId: string,
  email: string,
): Promise<Addressee | undefined> {
  const [row] = await readRows<Addressee>(
    db,
    sql`SELECT "User"."id" AS "userId", "User"."status" AS "userStatus", "Member"."status", "Member"."expiresAt"
      FROM "User" LEFT JOIN "Member" ON "Member"."userId" = "User"."id" AND "Member"."tenantId" = ${tenantId}
        AND ${membershipLasts(accessTime())}
      WHERE "User"."email" = ${email}`,
  );
  return row;
}

/**
 * Checks that a user is not a member and has no open invitation.
 * @throws ConflictError the user is already a member, or has an open invitation
 */
function checkAbsent(services: SqlServices, known: Addressee | undefined): void {
  const { status = null, expiresAt = null } = known ?? {};
  if (status !== null && !isExpired({ status, expiresAt }, services))
    throw new ConflictError(
      "email: the user with this address is already a member, or has an open invitation",
    );
}

/**
 * Adds a user as a member. On a cloud instance, the membership is pending until the user accepts the mailed invitation.
 * A new invitation replaces an ended membership or an expired invitation (rules sections 5.9 and 5.10).
 */
export const inviteMember: ObjectWrite<PublicOperations["inviteMember"], Membership> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const { tenant: tenantId, role } = identity;
  checkAuthority(role, body.role);
  const email = body.email.toLowerCase();
  const declaredBy = declaredColumn(declaration, services.now());
  const add = services.settings.edition === "cloud" ? mailInvitation : addMember;
  const member = await createOnce(context, {
    taken: "is already a member",
    find: async (tx, key) => {
      const known = await findRow(tx, "Member", { tenantId, creationKey: key });
      if (known === null) return null;
      // An Idempotency-Key that created a different membership is rejected. The response contains only the namespace,
      // so it could not show which membership the Idempotency-Key created.
      const user = await findRow(tx, "User", { id: known.userId });
      if (user?.email !== email)
        throw new ConflictError(
          `this Idempotency-Key already created the membership of the user ${known.userId}; send a new Idempotency-Key`,
        );
      return isExpired(known, services) ? null : known;
    },
    create: async () => {
      const accessExpiresAt = newEnd(services, "access_expires_at", body.access_expires_at);
      return add(services, tenantId, email, { role: body.role, accessExpiresAt, creationKey, declaredBy });
    },
  });
  context.became(member, member.userId);
  return readNamespace(services, tenantId);
};

export const updateMember: ObjectWrite<PublicOperations["updateMember"], Membership> = async ({
  services: { db },
  identity,
  body,
  found,
  became,
}) => {
  const stored = found();
  const { tenantId, userId, role } = stored;
  if (role === "owner") throw new ForbiddenError("the owner's membership cannot be changed");
  if (body.role === undefined && body.access_expires_at === undefined) return undefined;
  if (body.role !== undefined) checkAuthority(identity.role, body.role);
  const changes = {
    role: body.role ?? role,
    accessExpiresAt: updatedEnd("access_expires_at", body.access_expires_at, stored.accessExpiresAt),
  };
  await leaveToCommit(db, updateRow(db, "Member", { tenantId, userId }, changes));
  became({ ...stored, ...changes });
  return undefined;
};

export const removeMember: ObjectWrite<PublicOperations["removeMember"], Membership> = async ({
  services,
  identity,
  found,
  became,
}) => {
  const { tenantId, userId, role } = found();
  checkAuthority(identity.role, role as Role);
  await deleteRows(services.db, "Member", { tenantId, userId });
  became(null);
  return readNamespace(services, tenantId);
};

/**
 * Removes the caller from a namespace. If the caller's token is for this namespace, the response contains a session for
 * a different namespace, or for no namespace (rules section 5.7).
 */
export const leaveNamespace: ObjectWrite<PublicOperations["leaveNamespace"], Membership> = async (
  context,
) => {
  const { services, identity, became } = context;
  const { caller, tenant: tenantId, role } = identity;
  if (caller.kind !== "user") throw new ForbiddenError("a workload is not a member of the namespace");
  if (role === "owner") throw new ForbiddenError("the owner cannot leave the namespace, but can delete it");
  await deleteRows(services.db, "Member", { tenantId, userId: caller.userId });
  became(null);
  if (caller.tenant !== tenantId) return undefined;
  const user = await callingUser(services, caller);
  // The token is signed in the transaction, so other writes wait about 1 ms for the signature. Signing does not wait
  // for password hashing, because password hashing always leaves a thread free.
  return sessionOf(services, user, await homeOf(services, user), caller.token);
};
