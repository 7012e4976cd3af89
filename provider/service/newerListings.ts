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
  sshAccessModeOf,
} from "@gatehouse-access/sdk";
import type { z } from "zod";
import { isServiceAccount, Listing, type Namespace, PAGE_SIZE, type Source } from "./listings.ts";

type ItemOf<O extends AnyOperation<z.ZodArray>> = RequestResult<O["success"]["body"]>["body"][number];

/** An access policy, as the service returns it. */
export type AccessPolicy = ItemOf<typeof listAccessPolicies>;
/** A service account with its SSH key, as the service returns it. */
export type ServiceAccount = ItemOf<typeof listServiceAccounts>;
/** The SSH key of a user or a service account, as the service returns it. */
export type SshIdentity = ItemOf<typeof listSshIdentities>;
/** An install key, as the service lists it. */
export type InstallKey = ItemOf<typeof listInstallKeys>;

/**
 * Returns the listing of objects that the service returns in one list without pages.
 * @param look requests one object; default: searches a new list
 */
function wholeListing<Item extends { readonly id: string }>(
  read: () => Promise<readonly Item[]>,
  look: Source<Item>["look"] = async (id) => (await read()).find((item) => item.id === id),
): Listing<Item> {
  return new Listing({
    keysOf: ({ id }) => [id],
    async *pages() {
      const items = await read();
      yield { items, total: items.length };
    },
    look,
  });
}

/** Returns true if the server has access policies, service accounts and install keys. */
const hasAccessModes = async (client: Client): Promise<boolean> =>
  hasDifference((await client.serverVersion()).dialect, "access modes");

/** Requests a list. The list is empty if the server has no such objects. */
async function listOf<Items extends z.ZodArray>(
  client: Client,
  operation: AnyOperation<Items>,
  parts: RequestParts = {},
): Promise<RequestResult<Items>["body"] | []> {
  return (await hasAccessModes(client)) ? (await client.request(operation, parts)).body : [];
}

/** A member of a namespace, as older servers return it. Newer servers omit the status and the expiry. */
export type Member = Namespace["members"][number];

/**
 * Returns the listing of the users that are members of a namespace, by id. Only servers with access policies have this
 * list: see {@link usersOf}.
 */
export const memberListing = (client: Client, tenant: string): Listing<ItemOf<typeof listMembers>> =>
  wholeListing(async () => (await client.request(listMembers, { params: { tenant } })).body);

/**
 * Returns the users that are members of a namespace, without service accounts. On newer servers, the members of the
 * namespace contain service accounts, which can have the role of a user.
 * @param namespace the namespace with its members, or a newer server's namespace without its members
 */
export async function usersOf(
  { members }: { readonly members: ReturnType<typeof memberListing> },
  namespace: Pick<Namespace, "members" | "settings">,
): Promise<readonly Member[]> {
  if (sshAccessModeOf(namespace) === undefined) {
    return namespace.members.filter((member) => !isServiceAccount(member));
  }
  return (await members.all()).map(
    ({ id, email, role, addedAt }) => ({ id, email, role, addedAt }) as Member,
  );
}

/** Returns the listing of a namespace's access policies, by id. */
export const accessPolicyListing = (client: Client): Listing<AccessPolicy> =>
  wholeListing(
    () => listOf(client, listAccessPolicies),
    async (id) => (await client.request(getAccessPolicy, { params: { id } })).body,
  );

/** Returns the listing of a namespace's service accounts, by id. */
export const serviceAccountListing = (client: Client): Listing<ServiceAccount> =>
  wholeListing(() => listOf(client, listServiceAccounts));

/**
 * Returns the listing of the SSH keys in a namespace, by id. API keys cannot read the list. For members that are neither
 * owner nor administrator, the list contains only their own keys.
 */
export const sshIdentityListing = (client: Client): Listing<SshIdentity> =>
  wholeListing(() => listOf(client, listSshIdentities, { query: { all: true } }));

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
