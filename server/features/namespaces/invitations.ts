import { randomBytes } from "node:crypto";
import type { Role } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import type { Member, User } from "../../db/generated/sqlite/client.ts";
import { ConflictError, ForbiddenError } from "../../errors.ts";
import type { UserCaller } from "../../http/identity.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import { insertInvited } from "../users/createUser.ts";

/** How long an invitation waits, in milliseconds (rules section 5.10). */
const INVITATION_LIFE = 7 * 24 * 60 * 60_000;
/** Invitations of a namespace that may wait: each one is a mail to somebody who did not ask for it. */
const OPEN_INVITATIONS = 100;

/** An invitation as it is made. */
export interface NewInvitation {
  readonly tenantId: string;
  /** In lower case. */
  readonly email: string;
  readonly role: Role;
  /** Its sig goes to the address alone, and so proves whose the address is. */
  readonly mailed: boolean;
  readonly creationKey: string | null;
}

/** An invitation with the proof of it, of which only a digest is kept. */
export interface MadeInvitation {
  readonly member: Member;
  readonly sig: string;
}

/** True for a pending membership that can be accepted still. */
export const isOpen = ({ status, expiresAt, invitation }: Member, now: Date): boolean =>
  status === "pending" && invitation !== null && expiresAt !== null && expiresAt > now;

/** True for an invitation that nobody accepted in time; it can be made anew. */
export const ranOut = ({ status, expiresAt }: Member, now: Date): boolean =>
  status === "pending" && expiresAt !== null && expiresAt <= now;

/**
 * Makes a pending membership, of a new `invited` user where nobody has the address; one that was pending before is
 * replaced, and its sig with it. To be called in a transaction.
 * @throws ConflictError a member already
 * @throws ForbiddenError too many invitations of the namespace are open
 */
export async function makeInvitation(services: Services, input: NewInvitation): Promise<MadeInvitation> {
  const { tenantId, email, role, mailed, creationKey } = input;
  const now = services.now();
  const { id: userId } =
    (await services.db.user.findUnique({ where: { email }, select: { id: true } })) ??
    (await insertInvited(services, services.db, email));
  const key = { tenantId, userId };
  const known = await services.db.member.findUnique({ where: { tenantId_userId: key } });
  if (known?.status === "accepted") throw new ConflictError("email: is a member already");
  const open = { tenantId, status: "pending", expiresAt: { gt: now }, userId: { not: userId } };
  if ((await services.db.member.count({ where: open })) >= OPEN_INVITATIONS) {
    throw new ForbiddenError(`invitations: at most ${OPEN_INVITATIONS} of a namespace may be open`);
  }
  const sig = randomBytes(32).toString("base64url");
  const membership = {
    role,
    status: "pending",
    addedAt: now,
    expiresAt: new Date(now.getTime() + INVITATION_LIFE),
    invitation: digestOf(sig),
    invitationMailed: mailed,
    creationKey,
  };
  const member = await services.db.member.upsert({
    where: { tenantId_userId: key },
    create: { ...key, ...membership },
    update: membership,
  });
  return { member, sig };
}

/** The open invitation whose sig it is, with its user; null for any other text. */
export async function openInvitation(
  services: Services,
  sig: string,
): Promise<(Member & { readonly user: User }) | null> {
  const member = await services.db.member.findUnique({
    where: { invitation: digestOf(sig) },
    include: { user: true },
  });
  return member && isOpen(member, services.now()) ? member : null;
}

/**
 * Makes a user a member without being asked, instead of an invitation where there was one. To be called in a
 * transaction, after a look at the membership that there is.
 */
export function putMember(
  { db, now }: Services,
  key: { readonly tenantId: string; readonly userId: string },
  membership: { readonly role: string; readonly creationKey: string | null },
): Promise<Member> {
  const data = { ...membership, status: "accepted", addedAt: now(), expiresAt: null, invitation: null };
  return db.member.upsert({
    where: { tenantId_userId: key },
    create: { ...key, ...data },
    update: data,
  });
}

/** Who accepts an invitation, in which request. */
export interface Acceptance {
  readonly caller: UserCaller;
  readonly request: { readonly id: string; readonly address: string };
  /** Id of the operation. */
  readonly operation: string;
}

/** Makes a pending membership one like all others; its sig is worth nothing then. To be called in a transaction. */
export async function acceptMembership(
  services: Services,
  { tenantId, userId, role }: Member,
  { caller, request, operation }: Acceptance,
): Promise<void> {
  await services.db.member.update({
    where: { tenantId_userId: { tenantId, userId } },
    data: { status: "accepted", expiresAt: null, invitation: null },
  });
  // A revision has the role alone, which stays; who became a member when is worth an entry all the same.
  await recordChange(services, {
    tenantId,
    caller,
    request,
    operation,
    object: { kind: "member", id: userId },
    before: { role, status: "pending" },
    after: { role, status: "accepted" },
  });
}
