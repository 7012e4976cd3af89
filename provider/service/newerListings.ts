import {
  type AnyOperation,
  type Client,
  getAccessPolicy,
  hasDifference,
  iteratePages,
  listAccessPolicies,
  listInstallKeys,
  listMembers,
  listServiceAccounts,
  listSshIdentities,
  type RequestParts,
  type RequestResult,
} from "@gatehouse-access/sdk";
import type { z } from "zod";
import {
  isServiceAccount,
  isUnreadable,
  Listing,
  type Namespace,
  PAGE_SIZE,
  type Source,
} from "./listings.ts";

type ItemOf<O extends AnyOperation<z.ZodArray>> = RequestResult<O["success"]["body"]>["body"][number];

/** An access policy, as the service returns it. */
export type AccessPolicy = ItemOf<typeof listAccessPolicies>;
/** A service account with its SSH key, as the service returns it. */
export type ServiceAccount = ItemOf<typeof listServiceAccounts>;
/** The SSH key of a user or a service account, as the service returns it. */
export type SshIdentity = ItemOf<typeof listSshIdentities>;
/** An install key, as the service lists it. */
export type InstallKey = ItemOf<typeof listInstallKeys>;

/** Returns true if the server has access policies, service accounts and install keys. */
export const hasAccessModes = async (client: Client): Promise<boolean> =>
  hasDifference((await client.serverVersion()).dialect, "access modes");

/**
 * Returns the listing of objects that the service returns in one list without pages. The list is empty if the server
 * has no such objects.
 */
function wholeListing<Item extends { readonly id: string }>(
  client: Client,
  operation: AnyOperation<z.ZodType>,
  parts: RequestParts = {},
  look?: Source<Item>["look"],
): Listing<Item> {
  const read = async () =>
    (await hasAccessModes(client)) ? ((await client.request(operation, parts)).body as Item[]) : [];
  return new Listing({
    keysOf: ({ id }) => [id],
    async *pages() {
      const items = await read();
      yield { items, total: items.length };
    },
    look: look ?? (async (id) => (await read()).find((item) => item.id === id)),
  });
}

/** A member of a namespace, as older servers return it. Newer servers omit the status and the expiry. */
export type Member = Namespace["members"][number];

/**
 * Returns the listing of the users that are members of a namespace, by id. The list is empty on servers that return the
 * members only with their namespace: see {@link usersOf}.
 */
export const memberListing = (client: Client, tenant: string): Listing<ItemOf<typeof listMembers>> =>
  wholeListing(client, listMembers, { params: { tenant } });

/**
 * Returns the users that are members of a namespace, without service accounts. On newer servers, the members of the
 * namespace contain service accounts, which can have the role of a user. Undefined if the namespace does not exist.
 * @param readNamespace returns the namespace with its members
 */
export async function usersOf(
  { client, members }: { readonly client: Client; readonly members: ReturnType<typeof memberListing> },
  readNamespace: () => Promise<Pick<Namespace, "members"> | undefined>,
): Promise<readonly Member[] | undefined> {
  if (!(await hasAccessModes(client))) {
    return (await readNamespace())?.members.filter((member) => !isServiceAccount(member));
  }
  try {
    return (await members.all()).map(
      ({ id, email, role, addedAt }) => ({ id, email, role, addedAt }) as Member,
    );
  } catch (error) {
    if (isUnreadable(error) && !(await readNamespace())) return undefined;
    throw error;
  }
}

/** Returns the listing of a namespace's access policies, by id. */
export const accessPolicyListing = (client: Client): Listing<AccessPolicy> =>
  wholeListing(
    client,
    listAccessPolicies,
    {},
    async (id) => (await client.request(getAccessPolicy, { params: { id } })).body,
  );

/** Returns the listing of a namespace's service accounts, by id. */
export const serviceAccountListing = (client: Client): Listing<ServiceAccount> =>
  wholeListing(client, listServiceAccounts);

/**
 * Returns the listing of the SSH keys in a namespace, by id. API keys cannot read the list. For members that are neither
 * owner nor administrator, the list contains only their own keys.
 */
export const sshIdentityListing = (client: Client): Listing<SshIdentity> =>
  wholeListing(client, listSshIdentities, { query: { all: true } });

const keyOfName = (name: string) => `name ${name}`;

/** Returns the install key with this name from a listing. Undefined if no user's key has the name. */
export const installKeyNamed = (keys: Listing<InstallKey>, name: string): Promise<InstallKey | undefined> =>
  keys.find(keyOfName(name));

/** The type of the install keys that users create. The other types belong to two keys that each namespace has. */
const USER_KEY = "user";

/**
 * Returns the listing of the install keys that users created in a namespace, by id and by name. The list contains
 * revoked keys, whose names stay taken. API keys cannot read the list.
 */
export function installKeyListing(client: Client): Listing<InstallKey> {
  async function* pages() {
    if (!(await hasAccessModes(client))) return;
    const sorted = { sortBy: "created_at", orderBy: "asc", perPage: PAGE_SIZE };
    yield* iteratePages(listInstallKeys, sorted, async (query) => {
      const { headers, body } = await client.request(listInstallKeys, { query });
      return { headers, items: body };
    });
  }
  const keysOf = ({ id, name }: InstallKey) => [id, keyOfName(name)];
  return new Listing({
    keysOf,
    async *pages() {
      for await (const { items, total } of pages())
        yield { items: items.filter(({ type }) => type === USER_KEY), total };
    },
    async look(key) {
      for await (const { items } of pages()) {
        const found = items.find((item) => item.type === USER_KEY && keysOf(item).includes(key));
        if (found) return found;
      }
      return undefined;
    },
  });
}
