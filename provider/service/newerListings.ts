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
  type ResponseHeaders,
  sshAccessModeOf,
} from "@gatehouse-access/sdk";
import type { z } from "zod";
import { completeList, requireLength } from "./absence.ts";
import {
  isServiceAccount,
  keyOfName,
  Listing,
  lengthOf,
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

/**
 * Returns the listing of objects that the service returns in one list without pages.
 * @param look requests one object; default: searches a new list
 */
function wholeListing<Item extends { readonly id: string }>(
  kind: string,
  read: () => Promise<WholeList<Item>>,
  look?: Source<Item>["look"],
): Listing<Item> {
  async function* pages() {
    const { headers, body } = await read();
    yield { items: body, total: lengthOf(body, headers) };
  }
  const idOf = ({ id }: Item) => id;
  return new Listing({
    kind,
    keysOf: (item) => [idOf(item)],
    pages,
    look: look ?? (async (id) => (await completeList(kind, pages, idOf)).find((item) => idOf(item) === id)),
  });
}

/** A list that the service returns without pages. */
interface WholeList<Item> {
  readonly headers: ResponseHeaders;
  readonly body: readonly Item[];
}

/** The list of a server that does not have such objects. */
const NONE = { headers: { "x-total-count": "0" }, body: [] } as const;

/** Returns true if the server has access policies, service accounts and install keys. */
const hasAccessModes = async (client: Client): Promise<boolean> =>
  hasDifference((await client.serverVersion()).dialect, "access modes");

/** Requests a list. The list is empty if the server has no such objects. */
async function listOf<Items extends z.ZodArray>(
  client: Client,
  operation: AnyOperation<Items>,
  parts: RequestParts = {},
): Promise<WholeList<RequestResult<Items>["body"][number]>> {
  return (await hasAccessModes(client)) ? client.request(operation, parts) : NONE;
}

/** A member of a namespace, as older servers return it. Newer servers omit the status and the expiry. */
export type Member = Namespace["members"][number];

/**
 * Returns the listing of the users that are members of a namespace, by id. Only servers with access policies have this
 * list: see {@link usersOf}.
 */
export const memberListing = (client: Client, tenant: string): Listing<ItemOf<typeof listMembers>> =>
  wholeListing("Member", () => client.request(listMembers, { params: { tenant } }));

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
  const users = await members.all();
  // The owner of a namespace is always a member, so a proxy sent an empty list.
  requireLength("Member", users.length === 0, undefined);
  return users.map(({ id, email, role, addedAt }) => ({ id, email, role, addedAt }) as Member);
}

/** Returns the listing of a namespace's access policies, by id. */
export const accessPolicyListing = (client: Client): Listing<AccessPolicy> =>
  wholeListing(
    "AccessPolicy",
    () => listOf(client, listAccessPolicies),
    async (id) => (await client.request(getAccessPolicy, { params: { id } })).body,
  );

/** Returns the listing of a namespace's service accounts, by id. */
export const serviceAccountListing = (client: Client): Listing<ServiceAccount> =>
  wholeListing("ServiceAccount", () => listOf(client, listServiceAccounts));

/**
 * Returns the listing of the SSH keys in a namespace, by id. API keys cannot read the list. For members that are neither
 * owner nor administrator, the list contains only their own keys.
 */
export const sshIdentityListing = (client: Client): Listing<SshIdentity> =>
  wholeListing("PublicKey", () => listOf(client, listSshIdentities, { query: { all: true } }));

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
  async function* all() {
    if (!(await hasAccessModes(client))) {
      yield { items: [], total: 0 };
      return;
    }
    const sorted = { sortBy: "created_at", orderBy: "asc", perPage: PAGE_SIZE };
    yield* iteratePages(listInstallKeys, sorted, async (query) => {
      const { headers, body } = await client.request(listInstallKeys, { query });
      return { headers, items: body };
    });
  }
  const keysOf = ({ id, name }: InstallKey) => [id, keyOfName(name)];
  const kind = "InstallKey";
  async function* pages() {
    for await (const { items, total } of all()) {
      const own = items.filter(({ type }) => type === USER_KEY);
      yield { items: own, total, skipped: items.length - own.length };
    }
  }
  return new Listing({
    kind,
    keysOf,
    pages,
    look: async (key) =>
      (await completeList(kind, pages, ({ id }) => id)).find((item) => keysOf(item).includes(key)),
  });
}
