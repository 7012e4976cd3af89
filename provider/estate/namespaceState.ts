import {
  type Client,
  type Declaration,
  hasDifference,
  isNotFound,
  sshAccessModeOf,
} from "@gatehouse-access/sdk";
import { refusedKeyType } from "@gatehouse-access/sdk/contract";
import {
  type AccessDevice,
  type AccessKey,
  type AccessMember,
  type AccessRule,
  type EvaluatedLogins,
  type EvaluationOptions,
  hasExpired,
  loginsToEvaluate,
  type NamespacePolicy,
} from "@gatehouse-access/sdk/policy";
import { type NamespaceSettings, settingsIn } from "../resources/namespace.ts";
import { lineOf, sshFingerprintOf } from "../resources/publicKey.ts";
import { idWithin } from "../resources/values.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { hasStatus, type Invitation, readInvitations } from "../service/invitations.ts";
import {
  type ApiKey,
  apiKeyIdentity,
  type Device,
  type FirewallRule,
  isUnreadable,
  type KeyIdentity,
  type Namespace,
  type PublicKey,
  type TrustedWorkload,
} from "../service/listings.ts";
import { type Member, usersOf } from "../service/newerListings.ts";
import { isOwnAnswer } from "../service/server.ts";
import { byText, byTexts } from "../words.ts";
import { type IdentityState, identityRules, readIdentityState } from "./identityMode.ts";
import type { LiveObject, WATCHED_KINDS } from "./liveObjects.ts";

/** Number of most recent sessions whose login names and addresses are evaluated. */
const SESSIONS_MAX = 500;

/** The settings of a trusted workload. */
export type Workload = Pick<
  TrustedWorkload,
  "id" | "name" | "issuer" | "audience" | "claims" | "role" | "maxSessionMinutes" | "singleUse"
>;

/** The state of a namespace that a plan can change: the live state, or the state after a plan. */
export interface NamespaceState {
  /** The accepted devices, and the objects that decide about logins. */
  readonly policy: NamespacePolicy;
  /**
   * The reason why the access in the namespace is not known, as a sentence. Undefined if {@link policy} decides about
   * logins. {@link notEvaluated} contains the same sentence.
   */
  readonly accessUnknown: string | undefined;
  /** Members and open invitations; undefined if the credential may not read the members. */
  readonly members: readonly Member[] | undefined;
  /** API keys; undefined if the credential may not read the keys. */
  readonly apiKeys: readonly ApiKey[] | undefined;
  /** Trusted workloads; undefined if they could not be read. Empty on servers without trusted workloads. */
  readonly trustedWorkloads: readonly Workload[] | undefined;
  /** The settings of the namespace; undefined if the credential may not read the namespace. */
  readonly settings: NamespaceSettings | undefined;
  /**
   * Lists and resources that could not be evaluated, as sentences. The actual access may differ from {@link policy}
   * because of them.
   */
  readonly notEvaluated: readonly string[];
  /** Other facts that could not be determined, as sentences. */
  readonly unknown: readonly string[];
  /** The reasons why members, invitations or API keys could not be read. */
  readonly unreadable: Readonly<Partial<Record<"members" | "invitations" | "apiKeys", string>>>;
}

/** A live namespace. */
export interface Estate extends NamespaceState {
  readonly tenant: string;
  /** Name of the namespace; its id if the credential may not read the name. */
  readonly name: string;
  /** All devices. The policy contains only accepted devices. */
  readonly devices: readonly Device[];
  /**
   * The access policies and service accounts, even if they have no effect. Undefined on servers without access policies,
   * and if they could not be read.
   */
  readonly identity: IdentityState | undefined;
  /**
   * The ids of users who own keys and are not members, by e-mail address in lower case. Such a key admits logins again if
   * its owner becomes a member. Other servers, and servers whose caller is not an administrator, return no addresses.
   */
  readonly formerOwners: ReadonlyMap<string, string>;
  /** True if the server ends access by itself. Otherwise, the policy has no ends and no owners of keys. */
  readonly enforcesExpiry: boolean;
  /** The resources that declared objects last, by the kind and the id of the object, as in `PublicKey 73:d4:…`. */
  readonly declarers: ReadonlyMap<string, Declaration>;
  /** The login names and addresses of the most recent sessions, and the number of these sessions. */
  readonly seen: EvaluatedLogins & { readonly sessions: number };
}

/**
 * Reads a namespace. The connection reads each list once, so a later `inventoryOf` with the same connection sends no
 * further requests. `unknown` reports members, invitations, API keys and sessions that cannot be read.
 * @param named id of the namespace; default: the namespace of resources without a tenant
 * @throws RequestError if devices, public keys or firewall rules cannot be read
 */
export async function readEstate(connection: Connection, named?: string): Promise<Estate> {
  const opened = await connection.tenant(named);
  const { tenant, client } = opened;
  const unknown: string[] = [];
  const notEvaluated: string[] = [];
  const unreadable: { members?: string; invitations?: string; apiKeys?: string } = {};
  const report = (what: string, reason: string, list?: keyof typeof unreadable) => {
    const sentence = `${what} could not be read: ${reason}`;
    unknown.push(sentence);
    if (list) unreadable[list] = sentence;
    return undefined;
  };
  const optional = <T>(what: string, read: Promise<T>, list?: keyof typeof unreadable) =>
    read.catch((error: unknown) => {
      if (!isUnreadable(error)) throw error;
      return report(what, error.message, list);
    });
  const [devices, keys, rules, answer, apiKeys, trustedWorkloads, seen] = await Promise.all([
    opened.devices.all(),
    opened.keys.all(),
    rulesOf(connection, tenant, notEvaluated),
    optional("members", client.call("getNamespace", { params: { tenant } }), "members"),
    optional("API keys", opened.apiKeys.all(), "apiKeys"),
    optional("trusted workloads", connection.trustedWorkloads(tenant)),
    optional("sessions", seenLogins(client)),
  ]);
  const namespace = answer?.body;
  if (namespace) connection.namespaces.put(namespace);
  // Services after release 0.19 list invitations separately from members.
  const users = namespace && (await optional("members", usersOf(opened, namespace), "members"));
  const { invitations, error } = await readInvitations(opened, users ?? []);
  if (error) report("invitations", error.message, "invitations");
  const isShown = users !== undefined && users.length > 0 && users.every(({ email }) => email !== "");
  if (users && !isShown)
    report("members", "the service does not return the members with their e-mail addresses", "members");
  const members = users && isShown ? allMembers(users, invitations) : undefined;
  const reading = await readIdentity(opened, namespace, members);
  const identity = reading?.state;
  const accessUnknown = (await accessUnknownIn(client, tenant, namespace)) ?? reading?.accessUnknown;
  if (accessUnknown !== undefined) notEvaluated.push(accessUnknown);
  if (identity?.decides) notEvaluated.push(...identity.notEvaluated);
  // This project's server ends access by itself. It sends the revision of a namespace. If the namespace could not be
  // read, an object with an end shows this server.
  const hasEnd = [...keys, ...rules].some(({ expiresAt }) => expiresAt !== undefined);
  const enforcesExpiry = (answer !== undefined && isOwnAnswer(answer)) || hasEnd;
  if (!members && keys.some(({ owner }) => owner !== undefined)) {
    notEvaluated.push(
      "the members could not be read; keys with an owner are evaluated as if their owners were members",
    );
  }
  return {
    tenant,
    name: namespace?.name ?? tenant,
    policy: {
      devices: acceptedDevices(devices),
      keys: keys.map((key) => ({
        ...accessKey(key, enforcesExpiry),
        ...(identity && sshFingerprint(lineOf(key))),
      })),
      rules: accessRulesOf(rules),
      ...(enforcesExpiry && { members: members?.map(policyMember) }),
      ...(identity?.decides && { identity: identityRules(identity, members ?? []) }),
    },
    accessUnknown,
    settings: namespace && settingsIn(namespace),
    formerOwners: new Map(
      keys.flatMap(({ owner, ownerEmail }) =>
        owner !== undefined && ownerEmail !== undefined ? [[ownerEmail.toLowerCase(), owner] as const] : [],
      ),
    ),
    identity,
    enforcesExpiry,
    declarers: new Map([
      ...declarersOf("PublicKey", keys, ({ fingerprint }) => fingerprint),
      ...declarersOf("FirewallRule", rules, ({ id }) => id),
      ...declarersOf("Member", members ?? [], ({ id }) => id),
      ...declarersOf("ApiKey", apiKeys ?? [], ({ name }) => name),
      ...declarersOf("TrustedWorkload", trustedWorkloads ?? [], ({ id }) => id),
    ]),
    devices,
    members,
    apiKeys,
    trustedWorkloads,
    seen: seen ?? { sessions: 0, logins: [], addresses: [] },
    notEvaluated,
    unknown,
    unreadable,
  };
}

/** Returns the declarations of objects of one kind, for {@link Estate.declarers}. */
const declarersOf = <T extends { readonly declaredBy?: Declaration | undefined }>(
  kind: string,
  objects: readonly T[],
  idOf: (object: T) => string,
): (readonly [string, Declaration])[] =>
  objects.flatMap((object) => (object.declaredBy ? [[`${kind} ${idOf(object)}`, object.declaredBy]] : []));

/**
 * Reads several namespaces, one after the other. `unreadable` contains a sentence for each namespace that the
 * credential may not read, by id.
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

/** Reads the access policies of a namespace. Undefined on servers without access modes. */
async function readIdentity(
  opened: TenantClient,
  namespace: Namespace | undefined,
  members: readonly Member[] | undefined,
) {
  const mode = namespace && sshAccessModeOf(namespace);
  if (!namespace || mode === undefined || mode === "unknown") return undefined;
  const decides = mode === "identity";
  const { state, problem } = await readIdentityState(opened, namespace.members, decides);
  const reason = problem ?? (members ? undefined : "the members could not be read");
  const isKnown = !decides || reason === undefined;
  return {
    state,
    accessUnknown: isKnown
      ? undefined
      : `the access in the namespace ${namespace.name} is not known: ${reason}`,
  };
}

/**
 * Returns the reason why it is not known what decides about logins in a namespace, as a sentence. Undefined if public
 * keys and firewall rules decide, or access policies.
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
    // Without a version number, the version is determined by the settings of the namespace.
    if (isUnreadable(error)) return undefined;
    throw error;
  });
  if (server && !hasDifference(server.dialect, "access modes")) return undefined;
  return `${notKnown(tenant)}the namespace could not be read, and may decide by access policies`;
}

/** Returns members and open invitations in one list, in the format of services that return a combined list. */
const allMembers = (members: readonly Member[], invitations: readonly Invitation[]): Member[] => [
  ...members.map((member): Member => (hasStatus(member) ? member : { ...member, status: "accepted" })),
  ...invitations
    .filter(({ status }) => status === "pending")
    .map(
      ({ user, role, createdAt, expiresAt }): Member => ({
        ...{ ...user, role, status: "pending", type: "team", addedAt: createdAt, expiresAt },
      }),
    ),
];

/** The firewall rules. For a 404 that may come from a proxy, `notEvaluated` reports that the rules could not be read. */
async function rulesOf(
  connection: Connection,
  tenant: string,
  notEvaluated: string[],
): Promise<FirewallRule[]> {
  try {
    return await connection.firewallRules(tenant);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    notEvaluated.push(
      "firewall rules could not be read (404 without a message); access is evaluated without rules",
    );
    return [];
  }
}

async function seenLogins(client: Client): Promise<Estate["seen"]> {
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

/** Returns firewall rules as a policy contains them, oldest first. */
export const accessRulesOf = (rules: readonly FirewallRule[]): AccessRule[] =>
  inOrderOfCreation(rules).map(accessRule);

/** Sorts rules by id. Each new rule gets a higher id than all earlier rules. This also applies to text ids. */
const inOrderOfCreation = (rules: readonly FirewallRule[]): FirewallRule[] =>
  rules.toSorted((left, right) => left.id.localeCompare(right.id, "en", { numeric: true }));

/** The accepted devices, as a policy contains them. */
export const acceptedDevices = (devices: Iterable<Device>): AccessDevice[] =>
  [...devices]
    .filter(({ status }) => status === "accepted")
    .map(({ uid, name, tags }) => ({ uid, name, tags }));

function accessRule(rule: FirewallRule): AccessRule {
  const { id, action, active, priority, sourceIp, username, filter } = rule;
  return { id, action, active, priority, sourceIp, username, filter, ...endOf(rule.expiresAt) };
}

function accessKey(key: PublicKey, isOwnServer: boolean): AccessKey {
  const { fingerprint, name, username, filter, expiresAt, owner } = key;
  return {
    fingerprint,
    name,
    username,
    filter,
    ...refusedTypeOf(lineOf(key), isOwnServer),
    ...endOf(expiresAt),
    ...(owner !== undefined && { owner }),
  };
}

/**
 * Returns the type of a public key as a policy contains it, if the server refuses keys of this type. Other servers than
 * this project's admit all types of keys.
 * @param line the key as a line of an authorized_keys file
 */
export function refusedTypeOf(line: string, isOwnServer: boolean): Pick<AccessKey, "refusedType"> {
  const refusedType = isOwnServer ? refusedKeyType(line) : undefined;
  return refusedType === undefined ? {} : { refusedType };
}

/**
 * Returns the field of a key that identifies it in identity mode; empty for a key that is not valid.
 * @param line the key in OpenSSH format
 */
export function sshFingerprint(line: string): Pick<AccessKey, "sshFingerprint"> {
  const fingerprint = sshFingerprintOf(line);
  return fingerprint === undefined ? {} : { sshFingerprint: fingerprint };
}

/** Returns a member as a policy contains it. A user whose id the service does not return has the e-mail address as id. */
export const policyMember = ({ id, email, status, accessExpiresAt }: Member): AccessMember => ({
  ...{ id: id || email, email, isAccepted: status === "accepted" },
  ...endOf(accessExpiresAt),
});

/** Returns the end of an object as a policy contains it. Policies are compared, so each time has only one form. */
export const endOf = (time: string | undefined): { readonly expiresAt?: string } =>
  time === undefined ? {} : { expiresAt: new Date(time).toISOString() };

/** True if a membership has an end that has passed. */
export const hasMembershipEnded = ({ accessExpiresAt }: Pick<Member, "accessExpiresAt">, at: Date): boolean =>
  hasExpired(endOf(accessExpiresAt), at);

/** Returns a policy in which invited users count as members, since they can accept at any time without a review. */
export const countingInvited = <T extends NamespacePolicy>(policy: T): T =>
  policy.members
    ? { ...policy, members: policy.members.map((member) => ({ ...member, isAccepted: true })) }
    : policy;

/** Sorts devices by name and uid. */
export const byDevice = byTexts<AccessDevice>(
  ({ name }) => name,
  ({ uid }) => uid,
);

const byKey = byTexts<AccessKey>(
  ({ name }) => name,
  ({ fingerprint }) => fingerprint,
);

const byNameAndId = byTexts<{ readonly name: string; readonly id: string }>(
  ({ name }) => name,
  ({ id }) => id,
);

/**
 * Returns a namespace state with sorted lists. Rules stay in the order of their creation, since this order decides
 * between rules of the same priority.
 */
export const inOrder = <T extends NamespaceState>(state: T): T => ({
  ...state,
  policy: {
    ...state.policy,
    devices: state.policy.devices.toSorted(byDevice),
    keys: state.policy.keys.toSorted(byKey),
    ...(state.policy.identity && {
      identity: {
        policies: state.policy.identity.policies.toSorted(byNameAndId),
        principals: state.policy.identity.principals.toSorted(byNameAndId),
      },
    }),
  },
  members: state.members?.toSorted(byTexts(({ email }) => email)),
  apiKeys: state.apiKeys?.toSorted(byTexts(({ name }) => name)),
  trustedWorkloads: state.trustedWorkloads?.toSorted(byNameAndId),
});

/**
 * The login names and addresses to evaluate in a namespace: those in its policies and sessions, and those that the
 * caller adds.
 * @param policies the policies of the namespace before and after a change
 */
export function evaluatedFor(
  { seen }: Pick<Estate, "seen">,
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

/** Returns the state of a namespace without some of its objects. */
export function withoutObjects<
  T extends Pick<NamespaceState, "policy" | "members" | "apiKeys" | "trustedWorkloads">,
>(state: T, objects: readonly LiveObject[]): T {
  const idsOf = (kind: (typeof WATCHED_KINDS)[number]) =>
    new Set(objects.filter(({ definition }) => definition.name === kind).map(idWithin));
  const [keys, rules, tags] = [idsOf("PublicKey"), idsOf("FirewallRule"), idsOf("DeviceTagAttachment")];
  const [members, workloads] = [idsOf("Member"), idsOf("TrustedWorkload")];
  // A deleted key and a new key can have the same name.
  const apiKeys = new Set(
    objects.flatMap(({ definition, state }) =>
      definition.name === "ApiKey" && state ? [apiKeyIdentity(state as unknown as KeyIdentity)] : [],
    ),
  );
  const [policies, accounts] = [idsOf("AccessPolicy"), idsOf("ServiceAccount")];
  const untagged = (device: AccessDevice): AccessDevice => ({
    ...device,
    tags: device.tags.filter((tag) => !tags.has(`${device.uid}/${tag}`)),
  });
  const { policy } = state;
  return {
    ...state,
    policy: {
      keys: policy.keys.filter(({ fingerprint }) => !keys.has(fingerprint)),
      rules: policy.rules.filter(({ id }) => !rules.has(id)),
      devices: tags.size === 0 ? policy.devices : policy.devices.map(untagged),
      ...(policy.members && { members: policy.members.filter(({ id }) => !members.has(id)) }),
      ...(policy.identity && {
        identity: {
          policies: policy.identity.policies.filter(({ id }) => !policies.has(id)),
          principals: policy.identity.principals.filter(({ id }) => !members.has(id) && !accounts.has(id)),
        },
      }),
    },
    members: state.members?.filter(({ id }) => !members.has(id)),
    apiKeys: state.apiKeys?.filter((key) => !apiKeys.has(apiKeyIdentity(key))),
    trustedWorkloads: state.trustedWorkloads?.filter(({ id }) => !workloads.has(id)),
  };
}
