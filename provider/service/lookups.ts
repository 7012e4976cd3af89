import { and, type Client, ConfigurationError, type Filter, where } from "@gatehouse-access/sdk";
import type { Connection } from "./connection.ts";
import {
  type ApiKey,
  type Device,
  type FirewallRule,
  isUnreadable,
  type Namespace,
  type PublicKey,
} from "./listings.ts";

/** The options of every lookup. */
export interface LookupOptions {
  /**
   * The id of the namespace to read.
   * @default the stack's namespace
   */
  readonly tenant?: string;
}

/** The conditions of a device lookup. The lookup returns the devices that meet all of these conditions. */
export interface DeviceLookup extends LookupOptions {
  /** Selects devices that have all of these tags. */
  readonly tags?: readonly string[];
  /**
   * Selects devices with this status: `accepted`, `pending`, `rejected`, `unused` or `removed`.
   * @default all devices except removed devices
   */
  readonly status?: Device["status"];
  /** Selects the device with this name. */
  readonly name?: string;
  /** True selects the devices that reported within the last two minutes. False selects all other devices. */
  readonly online?: boolean;
}

/** A lookup of a namespace by its id or its name. */
export interface NamespaceLookup extends LookupOptions {
  /** Selects the namespace with this name. */
  readonly name?: string;
}

const BY_UID = { perPage: 100, sortBy: "uid", orderBy: "asc" } as const;
const PAGE = { query: { perPage: 100 } } as const;

const clientOf = async (service: Connection, { tenant }: LookupOptions): Promise<Client> =>
  (await service.tenant(tenant)).client;

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(withoutHints(item));
  return all;
}

/**
 * The names of the fields that contain the declaration of an object. Lookups omit these fields, because they contain a
 * time that each run changes. If a program passed this time to a resource, every run would change the resource.
 */
export const HINTS: ReadonlySet<string> = new Set(["declaredBy", "tagsDeclaredBy"]);

function withoutHints<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutHints) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([name]) => !HINTS.has(name));
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutHints(member)])) as T;
}

/** Returns the devices of a namespace that match the lookup. */
export async function devicesOf(service: Connection, lookup: DeviceLookup): Promise<Device[]> {
  const { tags, status, name, online } = lookup;
  const [first, ...others]: Filter[] = [
    ...(tags?.length ? [where("tags").contains(tags)] : []),
    ...(name === undefined ? [] : [where("name").eq(name.toLowerCase())]),
    ...(online === undefined ? [] : [where("online").bool(online)]),
  ];
  const query = { ...BY_UID, ...(status && { status }), ...(first && { filter: and(first, ...others) }) };
  return collect((await clientOf(service, lookup)).iterate("getDevices", { query }));
}

/**
 * Returns the accepted device that is replaced if this device is accepted: it has the same MAC address and a different
 * key. Sends one request.
 */
export async function replacedBy(
  service: Connection,
  { uid, tenantId, identity: { mac } }: Device,
): Promise<Device | undefined> {
  if (mac === "") return undefined;
  const query = { status: "accepted", filter: where("identity.mac").eq(mac), perPage: 100 } as const;
  const devices = await service.client.forTenant(tenantId).getDevices({ query });
  return devices.find((device) => device.uid !== uid && device.identity.mac === mac);
}

/**
 * Returns the most recently enrolled pending devices, newest first. If the service cannot sort by enrollment time,
 * returns the devices that reported last. Sends one request.
 */
export async function newestPending(service: Connection): Promise<readonly Device[]> {
  const { client } = await service.tenant(undefined);
  const query = { status: "pending", sortBy: "created_at", orderBy: "desc", perPage: 100 } as const;
  return client.getDevices({ query });
}

/**
 * Returns a namespace with its members. The lookup selects the namespace by `tenant` or by name. Without either,
 * returns the default namespace.
 * @throws Error if no such namespace exists
 */
export async function namespaceOf(
  service: Connection,
  { tenant, name }: NamespaceLookup,
): Promise<Namespace> {
  if (name === undefined) {
    const opened = await service.tenant(tenant);
    return withoutHints(await opened.client.getNamespace({ params: { tenant: opened.tenant } }));
  }
  const query = { filter: where("name").eq(name.toLowerCase()), perPage: 100 };
  const list = collect(service.client.iterate("getNamespaces", { query }));
  // Newer services do not list namespaces for API keys, because an API key belongs to one namespace.
  const found = await list.catch(async (error: unknown) => {
    if (isUnreadable(error)) return [await namespaceOf(service, {})];
    throw error;
  });
  const namespace = found.find((candidate) => candidate.name === name.toLowerCase());
  if (!namespace) {
    throw new ConfigurationError(`The user of the credential is not a member of a namespace "${name}"`, {
      field: ["getNamespace"],
    });
  }
  // An empty list of members is incomplete, since the owner of a namespace is always a member. Newer services omit the
  // members in lists of namespaces.
  return namespace.members.length > 0 ? namespace : namespaceOf(service, { tenant: namespace.tenantId });
}

/** Returns the members of a namespace, including the owner. */
export async function membersOf(service: Connection, lookup: LookupOptions): Promise<Namespace["members"]> {
  return (await namespaceOf(service, { ...lookup })).members;
}

/**
 * Returns the public keys of a namespace, oldest first. `data` is the OpenSSH line in the form that PublicKey
 * accepts.
 */
export async function publicKeysOf(service: Connection, lookup: LookupOptions): Promise<PublicKey[]> {
  const keys = await collect((await clientOf(service, lookup)).iterate("getPublicKeys", PAGE));
  return keys.map((key) => ({ ...key, data: Buffer.from(key.data, "base64").toString("utf8").trim() }));
}

/** Returns the firewall rules of a namespace, lowest priority first. */
export async function firewallRulesOf(service: Connection, lookup: LookupOptions): Promise<FirewallRule[]> {
  const { tenant, client } = await service.tenant(lookup.tenant);
  return collect(client.iterate("getFirewallRules", PAGE)).catch(service.withoutFirewall(tenant));
}

/** Returns the API keys of a namespace, without their secrets. */
export async function apiKeysOf(service: Connection, lookup: LookupOptions): Promise<ApiKey[]> {
  return collect((await clientOf(service, lookup)).iterate("listApiKeys", PAGE));
}

/** Returns the tags of all devices, keys and rules of a namespace. */
export async function tagsOf(service: Connection, lookup: LookupOptions): Promise<string[]> {
  return (await clientOf(service, lookup)).getTags();
}
