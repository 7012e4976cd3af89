import { type Client, hasDifference, sshAccessModeOf } from "@gatehouse-access/sdk";
import {
  type AccessDevice,
  type EvaluatedLogins,
  type EvaluationOptions,
  loginsToEvaluate,
  type NamespacePolicy,
  type SshIdentity,
} from "@gatehouse-access/sdk/policy";
import type { Kind, Reading, ReadObjects } from "../model/kind.ts";
import type { NamespaceFacts, Unread } from "../model/namespaceObjects.ts";
import type { KindName, LiveObject, Objects } from "../model/object.ts";
import { kindsWith } from "../resources/index.ts";
import { membersOf } from "../resources/member/index.ts";
import { sshIdentities, type SshIdentity as WireSshIdentity } from "../resources/sshIdentities.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { isUnreadable, type Namespace } from "../service/listings.ts";
import { isOwnAnswer } from "../service/server.ts";
import { byText, byTexts } from "../words.ts";
import { byKey, NamespaceState } from "./namespaceState.ts";

/** Number of most recent sessions that are searched for login names and addresses to evaluate. */
const SESSIONS_MAX = 500;

interface ReadOptions {
  /**
   * False to read only the objects, without the data that the evaluation of access requires. Sessions are then not
   * read, and a list that the evaluation requires may be unreadable without an error.
   * @default true
   */
  readonly evaluatesAccess?: boolean;
}

/**
 * Reads all objects of a namespace, by kind. `unread` contains the kinds that the credential may not read.
 * @param named id of the namespace; default: the namespace of resources without a tenant
 * @throws RequestError if devices, public keys or firewall rules cannot be read
 */
export async function readNamespace(
  connection: Connection,
  named?: string,
  { evaluatesAccess = true }: ReadOptions = {},
): Promise<NamespaceState> {
  const opened = await connection.tenant(named);
  const { tenant, client } = opened;
  const unknown: string[] = [];
  const optional = <T>(what: string, read: Promise<T>) =>
    read.catch((error: unknown) => {
      if (!isUnreadable(error)) throw error;
      unknown.push(`${what} could not be read: ${error.message}`);
      return undefined;
    });
  const answer = await client
    .call("getNamespace", { params: { tenant } })
    .catch((error: unknown) => (isUnreadable(error) ? undefined : Promise.reject(error)));
  const namespace = answer?.body;
  if (namespace) connection.namespaces.put(namespace);
  const mode = namespace && sshAccessModeOf(namespace);
  const hasAccessModes = mode !== undefined && mode !== "unknown";
  const [lists, userKeys, seen] = await Promise.all([
    Promise.all(
      kindsWith("reading").map(async (kind) => {
        return { kind, ...(await objectsOf(kind, connection, tenant, evaluatesAccess)) };
      }),
    ),
    hasAccessModes && evaluatesAccess ? keysOfUsers(opened) : undefined,
    evaluatesAccess ? optional("sessions", seenLogins(client)) : undefined,
  ]);
  const objects = new Map<KindName, Objects>();
  const unread = new Map<KindName, Unread>();
  const notEvaluated: string[] = [];
  for (const { kind, objects: own, unread: missing, ...read } of lists) {
    const name = kind.definition.name;
    if (own) objects.set(name, own);
    if (missing) unread.set(name, missing);
    notEvaluated.push(...(read.notEvaluated ?? []));
  }
  const facts: NamespaceFacts = {
    tenant,
    name: namespace?.name ?? tenant,
    hasAccessModes,
    userKeys: userKeys?.byUser,
    unreadIdentity: userKeys?.notEvaluated ?? [],
    enforcesExpiry: (answer !== undefined && isOwnAnswer(answer)) || hasEnd(objects),
    formerOwners: formerOwnersIn(objects),
    seen: seen ?? { sessions: 0, logins: [], addresses: [] },
  };
  const state = new NamespaceState({
    facts,
    objects,
    unread,
    accessPoliciesDecide: mode === "identity",
    accessUnknown: undefined,
    notEvaluated: [],
    unknown: [],
  });
  const accessUnknown =
    (await accessUnknownIn(client, tenant, namespace)) ??
    (mode === "identity" ? identityUnknown(state) : undefined);
  if (accessUnknown !== undefined) notEvaluated.push(accessUnknown);
  if (state.accessPoliciesDecide) notEvaluated.push(...facts.unreadIdentity);
  if (!membersOf(state) && state.policy.keys.some(({ owner }) => owner !== undefined)) {
    notEvaluated.push(
      "the members could not be read; keys with an owner are evaluated as if their owners were members",
    );
  }
  return state.inOrder().with({
    accessUnknown,
    notEvaluated,
    unknown: [
      ...[...unread.values()].map(({ what, reason }) => `${what} could not be read: ${reason}`),
      ...unknown,
    ],
  });
}

/** Reads the objects of one kind. */
async function objectsOf(
  { definition, reading }: Kind & { readonly reading: Reading },
  connection: Connection,
  tenant: string,
  evaluatesAccess: boolean,
): Promise<Omit<ReadObjects, "objects"> & { readonly objects: Objects | undefined }> {
  try {
    const { objects, ...more } = await reading.read(connection, tenant);
    const all = objects?.map((object): LiveObject => ({ ...object, definition }));
    return { ...more, objects: all && byKey(all) };
  } catch (error) {
    if ((reading.isRequired && evaluatesAccess) || !isUnreadable(error)) throw error;
    const { what, missed } = reading;
    return { objects: undefined, unread: { what, missed, reason: error.message } };
  }
}

/**
 * Returns true if any object has an expiry time that the server enforces. Such an object identifies this project's
 * server, since no other server enforces expiry times. The check is required only if the namespace could not be read:
 * otherwise, the revision of the namespace identifies the server.
 */
const hasEnd = (objects: ReadonlyMap<KindName, Objects>): boolean =>
  [...objects.values()].some((own) =>
    [...own.values()].some(({ state }) => state.expiryStatus === "enforced"),
  );

/**
 * Returns the ids of object owners by e-mail address, in lower case. Contains only owners whose address the service
 * returns.
 */
const formerOwnersIn = (objects: ReadonlyMap<KindName, Objects>): ReadonlyMap<string, string> =>
  new Map(
    [...objects.values()].flatMap((own) =>
      Array.from(own.values()).flatMap(({ state: { ownerId }, facts }) =>
        typeof ownerId === "string" && ownerId !== "" && typeof facts?.ownerEmail === "string"
          ? [[facts.ownerEmail.toLowerCase(), ownerId] as const]
          : [],
      ),
    ),
  );

/** Returns the reason why the access of a namespace in identity mode is not known, as a sentence. */
export function identityUnknown(state: NamespaceState): string | undefined {
  const deciding = kindsWith("decides");
  const unread = deciding.flatMap(({ definition }) => {
    if (definition.actsIn !== "identity") return [];
    const { what, reason } = state.unread.get(definition.name) ?? {};
    return what === undefined ? [] : [`${what} could not be read: ${reason}`];
  });
  const obstacles = deciding.flatMap(({ definition, decides }) =>
    Array.from(state.of(definition)?.values() ?? []).flatMap((object) => decides.obstacle?.(object) ?? []),
  );
  const reason =
    unread.length > 0
      ? unread.sort().join("; ")
      : (obstacles[0] ?? (membersOf(state) ? undefined : "the members could not be read"));
  return reason && `the access in the namespace ${state.name} is not known: ${reason}`;
}

/** Reads the SSH keys of the users of a namespace, by user. */
async function keysOfUsers({ listing }: TenantClient) {
  try {
    return { byUser: keysByUser(await listing(sshIdentities).all()), notEvaluated: [] };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    const sentence = `the SSH keys of users could not be read: ${error.message}`;
    return {
      byUser: undefined,
      notEvaluated: [`${sentence}; policies are evaluated as if each user had a key`],
    };
  }
}

/**
 * Returns SSH keys by user. Each user occurs twice: by id and by e-mail address. In a plan, the address can be known
 * before the id.
 */
export function keysByUser(keys: readonly WireSshIdentity[]): Map<string, SshIdentity[]> {
  const byUser = new Map<string, SshIdentity[]>();
  for (const { principalId, principalEmail, fingerprint, expiresAt, consumedAt, lastReauthAt } of keys) {
    for (const user of [principalId, principalEmail.toLowerCase()]) {
      const known = byUser.get(user) ?? [];
      known.push({ fingerprint, expiresAt, consumedAt, lastReauthAt });
      byUser.set(user, known);
    }
  }
  return byUser;
}

async function seenLogins(client: Client): Promise<NamespaceFacts["seen"]> {
  const logins = new Set<string>();
  const addresses = new Set<string>();
  let sessions = 0;
  for await (const { username, ipAddress } of client.iterate("getSessions", { query: { perPage: 100 } })) {
    logins.add(username);
    addresses.add(ipAddress);
    sessions += 1;
    if (sessions === SESSIONS_MAX) break;
  }
  return { sessions, logins: [...logins], addresses: [...addresses] };
}

/**
 * Reads several namespaces, one after the other. `unreadable` contains a sentence for each namespace that the
 * credential may not read, by the id of the namespace.
 * @param home id of the namespace that must be readable. An error while reading this namespace is thrown.
 */
export async function readEach<T>(
  tenants: readonly string[],
  home: string | undefined,
  read: (tenant: string) => Promise<T>,
): Promise<{ readonly results: readonly T[]; readonly unreadable: ReadonlyMap<string, string> }> {
  const results: T[] = [];
  const unreadable = new Map<string, string>();
  for (const tenant of tenants) {
    try {
      results.push(await read(tenant));
    } catch (error) {
      if (tenant === home || !isUnreadable(error)) throw error;
      unreadable.set(tenant, `the namespace ${tenant} could not be read: ${error.message}`);
    }
  }
  return { results, unreadable };
}

/**
 * Returns the reason why the access mode of a namespace is not known, as a sentence. Returns undefined if the mode is
 * known: either public keys and firewall rules authorize logins, or access policies do.
 * @param namespace undefined if the credential may not read the namespace
 */
export async function accessUnknownIn(
  client: Client,
  tenant: string,
  namespace: Pick<Namespace, "name" | "settings"> | undefined,
): Promise<string | undefined> {
  const notKnown = (name: string) => `the access in the namespace ${name} is not known: `;
  if (namespace) {
    const mode = sshAccessModeOf(namespace);
    if (mode === "unknown")
      return `${notKnown(namespace.name)}the namespace has an access mode that this version does not know`;
    if (mode === undefined && hasDifference((await client.serverVersion()).dialect, "access modes"))
      return `${notKnown(namespace.name)}the server does not return whether access policies decide`;
    return undefined;
  }
  const server = await client.serverVersion().catch((error: unknown) => {
    // If the server's version number cannot be read, the settings of the namespace determine the version.
    if (isUnreadable(error)) return undefined;
    throw error;
  });
  if (server && !hasDifference(server.dialect, "access modes")) return undefined;
  return `${notKnown(tenant)}the namespace could not be read, and may decide by access policies`;
}

/**
 * Returns a policy in which invited users are treated as members, since they can accept their invitation at any time
 * without a review.
 */
export const countingInvited = <T extends NamespacePolicy>(policy: T): T =>
  policy.members
    ? { ...policy, members: policy.members.map((member) => ({ ...member, isAccepted: true })) }
    : policy;

/** Sorts devices by name and uid. */
export const byDevice = byTexts<AccessDevice>(
  ({ name }) => name,
  ({ uid }) => uid,
);

/**
 * Returns the login names and addresses to evaluate in a namespace: those in its policies and sessions, and those that
 * the caller adds.
 * @param policies the policies of the namespace before and after a change
 */
export function evaluatedFor(
  { seen }: Pick<NamespaceFacts, "seen">,
  policies: readonly NamespacePolicy[],
  { logins = [], addresses = [] }: EvaluationOptions = {},
): EvaluatedLogins {
  const evaluated = loginsToEvaluate(policies, {
    logins: [...seen.logins, ...logins],
    addresses: [...seen.addresses, ...addresses],
  });
  return {
    ...evaluated,
    logins: evaluated.logins.toSorted(byText),
    addresses: evaluated.addresses.toSorted(byText),
  };
}
