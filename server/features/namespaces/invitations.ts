import { randomBytes } from "node:crypto";
import type { Role } from "@gatehouse-access/sdk/contract";
import { DAY } from "@gatehouse-access/sdk/times";
import { recordChange } from "../../changes/recordChange.ts";
import type { Member, User } from "../../db/generated/sqlite/client.ts";
import { countRows, findRow, putRow } from "../../db/sql/rows.ts";
import { sql } from "../../db/sql/sql.ts";
import { ConflictError, ForbiddenError } from "../../errors.ts";
import type { UserCaller } from "../../http/access/identity.ts";
import { hasMembershipEnded, isMember } from "../../http/access/membership.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services, SqlServices } from "../../services.ts";
import { insertInvited } from "../users/account/createUser.ts";
import { declaredMember } from "./objects.ts";

/** Lifetime of an invitation, in milliseconds (rules section 5.10). */
const INVITATION_LIFE = 7 * DAY;
/**
 * Maximum number of open invitations in a namespace. The limit is necessary because the service may send a mail for
 * each invitation, to a person who did not request the mail.
 */
const OPEN_INVITATIONS = 100;

type MemberKey = Pick<Member, "tenantId" | "userId">;

/** The input of a new invitation. */
interface NewInvitation {
  readonly tenantId: string;
  /** E-mail address of the invited person, in lower case. */
  readonly email: string;
  readonly role: Role;
  /**
   * True if the secret of the invitation (`sig`) is sent only to the e-mail address. A request with the secret then
   * proves that the sender can read mails to this address.
   */
  readonly mailed: boolean;
  readonly accessExpiresAt: Date | null;
  readonly creationKey: string | null;
  readonly declaredBy: string | null;
}

/** An invitation with its secret, the sig. The database stores only a digest of the sig. */
export interface CreatedInvitation {
  readonly member: Member;
  readonly sig: string;
}

/** The clocks that invitations and memberships use. */
type Clocks = Pick<Services, "now" | "accessTime">;

/** Returns true if a membership is pending and the user can still accept it. */
export function isOpen(member: Member, { now, accessTime }: Clocks): boolean {
  const { status, expiresAt, invitation } = member;
  if (status !== "pending" || invitation === null || expiresAt === null) return false;
  return expiresAt > now() && !hasMembershipEnded(member, accessTime());
}

/** Returns true if an invitation has expired. */
export const isExpired = (
  { status, expiresAt }: Pick<Member, "expiresAt" | "status">,
  { now }: Pick<Clocks, "now">,
): boolean => status === "pending" && expiresAt !== null && expiresAt <= now();

/**
 * Creates a pending membership. If no user has the address, creates a new user with the status `invited`. Replaces an
 * ended membership, or an earlier pending membership and its sig. Call this function in a transaction.
 * @throws ConflictError the user is already a member
 * @throws ForbiddenError the namespace has too many open invitations
 */
export async function createInvitation(
  services: SqlServices,
  input: NewInvitation,
): Promise<CreatedInvitation> {
  const { tenantId, email, role, mailed, accessExpiresAt, creationKey, declaredBy } = input;
  const { db } = services;
  const now = services.now();
  const userId = (await findRow(db, "User", { email }))?.id ?? (await insertInvited(services, email));
  const key = { tenantId, userId };
  const known = await findRow(db, "Member", key);
  if (known && isMember(known, services.accessTime()))
    throw new ConflictError("email: the user with this address is already a member");
  if ((await countOpen(services, key)) >= OPEN_INVITATIONS) {
    throw new ForbiddenError(
      `invitations: the namespace has the maximum of ${OPEN_INVITATIONS} open invitations`,
    );
  }
  const sig = randomBytes(32).toString("base64url");
  const membership = {
    role,
    status: "pending",
    addedAt: now,
    expiresAt: new Date(now.getTime() + INVITATION_LIFE),
    invitation: digestOf(sig),
    invitationMailed: mailed,
    accessExpiresAt,
    creationKey,
    declaredBy,
  };
  await putRow(db, "Member", key, membership);
  return { member: { ...key, ...membership }, sig };
}

/** Returns the number of open invitations in the namespace, except the invitation of the given user. */
const countOpen = ({ db, now }: SqlServices, { tenantId, userId }: MemberKey): Promise<number> =>
  countRows(
    db,
    "Member",
    sql`"tenantId" = ${tenantId} AND "status" = 'pending' AND "expiresAt" > ${now()} AND "userId" <> ${userId}`,
  );

/** Returns the open invitation with the sig, and the invited user. Returns null if no open invitation has the sig. */
export async function openInvitation(
  services: Services,
  sig: string,
): Promise<(Member & { readonly user: User }) | null> {
  const member = await services.db.member.findUnique({
    where: { invitation: digestOf(sig) },
    include: { user: true },
  });
  return member && isOpen(member, services) ? member : null;
}

/**
 * Adds a user as a member without the user's consent. Replaces an open invitation or an ended membership. Call this
 * function in the same transaction that read the current membership.
 */
export async function putMember(
  { db, now }: SqlServices,
  key: MemberKey,
  membership: Pick<Member, "role" | "accessExpiresAt" | "creationKey" | "declaredBy">,
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

/** A user's acceptance of an invitation: the user and the request. */
interface Acceptance {
  readonly caller: UserCaller;
  readonly request: { readonly id: string; readonly address: string };
  /** Id of the operation. */
  readonly operation: string;
}

/** Accepts a pending membership, and invalidates its sig. Call this function in a transaction. */
export async function acceptMembership(
  services: Services,
  member: Member,
  { caller, request, operation }: Acceptance,
): Promise<void> {
  const { tenantId, userId } = member;
  const declared = declaredMember(member);
  await services.db.member.update({
    where: { tenantId_userId: { tenantId, userId } },
    data: { status: "accepted", expiresAt: null, invitation: null },
  });
  // Accepting an invitation changes no declared field of the membership, so the audit entry is recorded here.
  await recordChange(services, {
    tenantId,
    caller,
    request,
    operation,
    object: { kind: "member", id: userId },
    before: { ...declared, status: "pending" },
    after: { ...declared, status: "accepted" },
  });
}
