import {
  type Client,
  cancelInvitation,
  hasDifference,
  isNotFound,
  iteratePages,
  listInvitations,
  RequestError,
} from "@gatehouse-access/sdk";
import { doubtOf, requireAbsent } from "../../service/absence.ts";
import type { TenantClient } from "../../service/connection.ts";
import { isUnreadable, type ListingSource } from "../../service/listings.ts";

const fetchInvitations = async (client: Client, tenant: string, query: object) => {
  const { headers, body } = await client.request(listInvitations, { params: { tenant }, query });
  return { headers, items: body };
};

/** An invitation in the separate list of invitations that some services have. */
export type Invitation = Awaited<ReturnType<typeof fetchInvitations>>["items"][number];

/**
 * The invitations to a namespace, for services that list invitations separately from members. The list contains all
 * pending invitations, and may contain invitations with a different status.
 */
export const invitations: ListingSource<Invitation> = (client, tenant) => ({
  kind: "Member",
  keysOf: ({ user, createdAt }) => [`${user.id} ${createdAt}`],
  pages: () => iteratePages(listInvitations, {}, (query) => fetchInvitations(client, tenant, query)),
  look: async () => undefined,
});

/**
 * Returns true if the service returns a status for the member. Only services that list invited users as members do so.
 */
export const hasStatus = (member: { readonly status?: string }): boolean => member.status !== undefined;

/**
 * Returns true if an error shows that a list cannot be read: the service does not have it, or the credential has no
 * permission to read it.
 */
export const isNotReturned = (error: unknown): error is RequestError =>
  isUnreadable(error) || (error instanceof RequestError && error.status === 405);

/** Returns true if an error shows that the service does not have a list. */
const isMissingList = (error: RequestError): boolean => isNotFound(error) || error.status === 405;

/**
 * Reads the invitations of a namespace from their separate list. Returns an empty list if the service lists invited
 * users as members, or if its version has no invitations. `error` is set if the list cannot be read.
 * @param members the members of the namespace
 */
export async function readInvitations(
  { client, listing }: Pick<TenantClient, "client" | "listing">,
  members: readonly { readonly status?: string }[],
): Promise<{ readonly invitations: readonly Invitation[]; readonly error?: RequestError }> {
  if (members.every(hasStatus)) return { invitations: [] };
  try {
    return { invitations: await listing(invitations).all() };
  } catch (error) {
    if (!isNotReturned(error)) throw error;
    const { dialect } = await client.serverVersion();
    const hasNone = isMissingList(error) && !hasDifference(dialect, "invitations");
    return { invitations: [], ...(!hasNone && { error }) };
  }
}

/**
 * Withdraws an invitation. Succeeds if the invitation is no longer open.
 * @param isOpen reads the invitations again, and returns true if the invitation is still open
 */
export async function withdrawInvitation(
  client: Client,
  tenant: string,
  uid: string,
  isOpen: () => Promise<boolean>,
): Promise<void> {
  const doubt = await doubtOf(client, (witnessed) =>
    witnessed.request(cancelInvitation, { params: { tenant, uid } }),
  );
  await requireAbsent("Member", uid, doubt, isOpen);
}
