import { randomBytes } from "node:crypto";
import type { Role } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import type { Member, User } from "../../db/generated/sqlite/client.ts";
import { countRows, findRow, putRow } from "../../db/sql/rows.ts";
import { sql } from "../../db/sql/sql.ts";
import { ConflictError, ForbiddenError } from "../../errors.ts";
import type { UserCaller } from "../../http/access/identity.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services, SqlServices } from "../../services.ts";
import { insertInvited } from "../users/account/createUser.ts";

/** How long an invitation can be accepted, in milliseconds (rules section 5.10). */
const INVITATION_LIFE = 7 * 24 * 60 * 60_000;
/** Open invitations that a namespace may have: each one sends a mail to somebody who did not ask for it. */
const OPEN_INVITATIONS = 100;

type MemberKey = Pick<Member, "tenantId" | "userId">;

/** The input of a new invitation. */
interface NewInvitation {
  readonly tenantId: string;
  /** In lower case. */
  readonly email: string;
  readonly role: Role;
  /** The sig goes only to the address, and so proves who owns the address. */
  readonly mailed: boolean;
  readonly creationKey: string | null;
  readonly declaredBy: string | null;
}

/** An invitation with its secret sig, of which only a digest is stored. */
export interface MadeInvitation {
  readonly member: Member;
  readonly sig: string;
}

/** True for a pending membership that can still be accepted. */
export const isOpen = ({ status, expiresAt, invitation }: Member, now: Date): boolean =>
  status === "pending" && invitation !== null && expiresAt !== null && expiresAt > now;

/** True for an expired invitation, which can be made again. */
export const ranOut = (
  { status, expiresAt }: Pick<Member, "expiresAt"> & { readonly status: string | null },
  now: Date,
): boolean => status === "pending" && expiresAt !== null && expiresAt <= now;

/**
 * Makes a pending membership, of a new `invited` user if nobody has the address. An earlier pending membership is
 * replaced, together with its sig. To be called in a transaction.
 * @throws ConflictError the user is a member already
 * @throws ForbiddenError the namespace has too many open invitations
 */
export async function makeInvitation(services: SqlServices, input: NewInvitation): Promise<MadeInvitation> {
  const { tenantId, email, role, mailed, creationKey, declaredBy } = input;
  const { db } = services;
  const now = services.now();
  const userId = (await findRow(db, "User", { email }))?.id ?? (await insertInvited(services, email));
  const key = { tenantId, userId };
  const known = await findRow(db, "Member", key);
  if (known?.status === "accepted") throw new ConflictError("email: is a member already");
  if ((await countOpen(services, key)) >= OPEN_INVITATIONS) {
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
    declaredBy,
  };
  await putRow(db, "Member", key, membership);
  return { member: { ...key, ...membership }, sig };
}

/** The number of the namespace's invitations that can still be accepted, but for that of one user. */
const countOpen = ({ db, now }: SqlServices, { tenantId, userId }: MemberKey): Promise<number> =>
  countRows(
    db,
    "Member",
    sql`"tenantId" = ${tenantId} AND "status" = 'pending' AND "expiresAt" > ${now()} AND "userId" <> ${userId}`,
  );

/** The open invitation with the sig, and its user; null for any other text. */
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
 * Makes a user a member without asking, and replaces an open invitation. To be called in a transaction, after a look at
 * the present membership.
 */
export async function putMember(
  { db, now }: SqlServices,
  key: MemberKey,
  membership: Pick<Member, "role" | "creationKey" | "declaredBy">,
): Promise<Member> {
  const data = {
    ...membership,
    status: "accepted",
    addedAt: now(),
    expiresAt: null,
    invitation: null,
    invitationMailed: false,
  };
  await putRow(db, "Member", key, data);
  return { ...key, ...data };
}

/** The caller who accepts an invitation, and the request. */
export interface Acceptance {
  readonly caller: UserCaller;
  readonly request: { readonly id: string; readonly address: string };
  /** Id of the operation. */
  readonly operation: string;
}

/** Turns a pending membership into an accepted one; its sig becomes void. To be called in a transaction. */
export async function acceptMembership(
  services: Services,
  { tenantId, userId, role }: Member,
  { caller, request, operation }: Acceptance,
): Promise<void> {
  await services.db.member.update({
    where: { tenantId_userId: { tenantId, userId } },
    data: { status: "accepted", expiresAt: null, invitation: null },
  });
  // The revision has only the role, which stays; the acceptance deserves an audit entry all the same.
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
