import { listMembers, sshAccessModeOf } from "@gatehouse-access/sdk";
import { requireLength } from "../../service/absence.ts";
import type { TenantClient } from "../../service/connection.ts";
import { isServiceAccount, type ListingSource, type Namespace } from "../../service/listings.ts";
import { type ItemOf, wholeSource } from "../../service/wholeLists.ts";

/** A member of a namespace, in the form of older servers. Newer servers omit the status and the expiry. */
export type Member = Namespace["members"][number];

/**
 * The users who are members of a namespace, by id. Only servers with access policies have this separate list. See
 * {@link usersOf}.
 */
export const members: ListingSource<ItemOf<typeof listMembers>> = (client, tenant) =>
  wholeSource("Member", () => client.request(listMembers, { params: { tenant } }));

/**
 * Returns the users who are members of a namespace, without service accounts. Newer servers also return service
 * accounts as members, and a service account can have the same role as a user.
 * @param namespace the namespace. Servers without access modes must have returned it with its members
 */
export async function usersOf(
  { listing }: Pick<TenantClient, "listing">,
  namespace: Pick<Namespace, "members" | "settings">,
): Promise<readonly Member[]> {
  if (sshAccessModeOf(namespace) === undefined) {
    return namespace.members.filter((member) => !isServiceAccount(member));
  }
  const users = await listing(members).all();
  // The owner of a namespace is always a member. If the list is empty, the response may come from a proxy.
  requireLength("Member", users.length === 0, undefined);
  return users.map(({ id, email, role, addedAt }) => ({ id, email, role, addedAt }) as Member);
}
