import { type Client, NotFoundError } from "@gatehouse-access/sdk";
import { defineOperation, email, ROLES, tenantId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { Connection } from "./connection.ts";
import { isNewer } from "./release.ts";

// What services of 0.27 were seen to do: they add no members, but invite them, and list their invitations apart.

const part = "Namespaces and members";
const params = { tenant: tenantId };
const user = z.string().min(1);

const invitation = z.object({
  user: z.object({ id: user, email }),
  role: z.enum(ROLES),
  status: z.string(),
  expires_at: z.string(),
  created_at: z.string(),
});

const listInvitations = defineOperation({
  id: "listInvitations",
  part,
  summary: "The invitations of a namespace",
  method: "GET",
  path: "/api/namespaces/{tenant}/invitations",
  auth: ["jwt"],
  scope: "path",
  params,
  success: { body: z.array(invitation) },
});

const cancelInvitation = defineOperation({
  id: "cancelInvitation",
  part,
  summary: "Withdraw an invitation",
  method: "DELETE",
  path: "/api/namespaces/{tenant}/invitations/{user}",
  auth: ["jwt"],
  scope: "path",
  params: { ...params, user },
});

/** How far an invited user has come. */
export type InvitationStatus = "invited" | "expired" | "declined";

/** An invitation that was not accepted yet. */
export interface Invitation {
  readonly userId: string;
  readonly email: string;
  readonly role: (typeof ROLES)[number];
  readonly status: InvitationStatus;
  readonly createdAt: string;
  /** When it ends, or ended. */
  readonly expiresAt: string;
}

/** True for a service that invites members instead of adding them, and lists its invitations. */
export async function invitesMembers(connection: Connection): Promise<boolean> {
  const release = await connection.release();
  return release !== undefined && isNewer(release);
}

/** The latest invitation of each user who has not accepted it. What was withdrawn is none. */
export async function invitationsOf(client: Client, tenant: string, now: Date): Promise<Invitation[]> {
  const all = await client.callForeign(listInvitations, { params: { tenant } });
  const latest = new Map<string, Invitation>();
  for (const wire of all.toSorted(
    (left, right) => Date.parse(left.createdAt) - Date.parse(right.createdAt),
  )) {
    const { user, role, createdAt, expiresAt } = wire;
    const status = statusOf(wire.status, expiresAt, now);
    if (!status) latest.delete(user.id);
    else latest.set(user.id, { userId: user.id, email: user.email, role, status, createdAt, expiresAt });
  }
  return [...latest.values()];
}

/**
 * Only `pending` was ever seen. Of the other words those count as no invitation that say that it was accepted, which
 * makes a member, or withdrawn; what is left over ended without either.
 */
function statusOf(status: string, expiresAt: string, now: Date): InvitationStatus | undefined {
  if (status === "pending") return Date.parse(expiresAt) <= now.getTime() ? "expired" : "invited";
  if (/accept|cancel|withdraw|revoke/.test(status)) return undefined;
  return status === "expired" ? "expired" : "declined";
}

/** Withdraws an invitation, if it is there. */
export async function withdraw(client: Client, tenant: string, userId: string): Promise<void> {
  try {
    await client.callForeign(cancelInvitation, { params: { tenant, user: userId } });
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
}
