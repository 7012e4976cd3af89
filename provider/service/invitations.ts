import { type Client, isNotFound, iteratePages, PermissionError, RequestError } from "@gatehouse-access/sdk";
import { dateTime, defineOperation, paging, role, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { Listing } from "./listings.ts";

// Requests of services after 0.19, as they were recorded with a 0.27. The contract does not have them: 0.19 lists
// invited people as members.

const part = "Namespaces and members";

const listInvitations = defineOperation({
  id: "listInvitations",
  part,
  summary: "The invitations of a namespace",
  method: "GET",
  path: "/api/namespaces/{tenant}/invitations",
  auth: ["jwt", "apikey"],
  scope: "path",
  params: { tenant: z.string() },
  query: paging,
  success: {
    headers: [TOTAL_COUNT],
    body: z.array(
      z.object({
        created_at: dateTime,
        expires_at: dateTime,
        status: z.string(),
        role,
        user: z.object({ id: z.string(), email: z.string() }),
      }),
    ),
  },
});

const cancelInvitation = defineOperation({
  id: "cancelInvitation",
  part,
  summary: "Withdraw an invitation",
  method: "DELETE",
  path: "/api/namespaces/{tenant}/invitations/{uid}",
  auth: ["jwt"],
  scope: "path",
  params: { tenant: z.string(), uid: z.string() },
});

const fetchInvitations = async (client: Client, tenant: string, query: object) => {
  const { headers, body } = await client.request(listInvitations, { params: { tenant }, query });
  return { headers, items: body };
};

/** An invitation, as services list it that keep invitations apart from members. */
export type Invitation = Awaited<ReturnType<typeof fetchInvitations>>["items"][number];

/** Invitations of a namespace of a service that keeps them apart from its members: pending ones, and perhaps others. */
export function invitationListing(client: Client, tenant: string): Listing<Invitation> {
  return new Listing({
    keysOf: ({ user, createdAt }) => [`${user.id} ${createdAt}`],
    pages: () => iteratePages(listInvitations, {}, (query) => fetchInvitations(client, tenant, query)),
    look: async () => undefined,
  });
}

/** True for a member of a service that lists invited people as members; other services send no status. */
export const hasStatus = (member: { readonly status?: string }): boolean => member.status !== undefined;

/** True for the error of a list that the service does not have, or does not show to this credential. */
export const isNotTold = (error: unknown): boolean =>
  isNotFound(error) ||
  error instanceof PermissionError ||
  (error instanceof RequestError && error.status === 405);

/** Withdraws an invitation of such a service. One that is not open any more is withdrawn already. */
export async function withdrawInvitation(client: Client, tenant: string, uid: string): Promise<void> {
  try {
    await client.request(cancelInvitation, { params: { tenant, uid } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
