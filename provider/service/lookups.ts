import { and, type Client, ConfigurationError, type Filter, where } from "@gatehouse-access/sdk";
import type { Connection } from "./connection.ts";
import type { ApiKey, Device, FirewallRule, Namespace, PublicKey } from "./listings.ts";

/** The namespace that a lookup reads. */
export interface LookupOptions {
  /**
   * Id of the namespace.
   * @default the stack's namespace
   */
  readonly tenant?: string;
}

/** Which devices a lookup finds: those that meet all conditions that are given. */
export interface DeviceLookup extends LookupOptions {
  /** Devices that carry all of these tags. */
  readonly tags?: readonly string[];
  readonly status?: Device["status"];
  /** The device with this name. */
  readonly name?: string;
  /** True for devices that reported within two minutes, false for those that did not. */
  readonly online?: boolean;
}

/** Which namespace a lookup finds: by its id, or by its name. */
export interface NamespaceLookup extends LookupOptions {
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
 * What the service says of who declared an object. It is no part of the object, and each run changes its time: a program
 * that gave a whole answer to a resource would never be done.
 */
export const HINTS: ReadonlySet<string> = new Set(["declaredBy", "tagsDeclaredBy"]);

function withoutHints<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutHints) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([name]) => !HINTS.has(name));
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutHints(member)])) as T;
}

/** The devices of a namespace. */
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
 * A namespace with its members, by tenant or by name; without either, the namespace of resources that name none.
 * @throws Error when there is none
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
  const found = await collect(service.client.iterate("getNamespaces", { query }));
  const namespace = found.find((candidate) => candidate.name === name.toLowerCase());
  if (!namespace) {
    throw new ConfigurationError(`the credential's user is in no namespace called "${name}"`, {
      field: ["getNamespace"],
    });
  }
  // Every namespace has its owner as a member; lists of newer services leave the members out.
  return namespace.members.length > 0 ? namespace : namespaceOf(service, { tenant: namespace.tenantId });
}

/** The members of a namespace, the owner among them. */
export async function membersOf(service: Connection, lookup: LookupOptions): Promise<Namespace["members"]> {
  return (await namespaceOf(service, { ...lookup })).members;
}

/** The public keys of a namespace, oldest first; `data` is the OpenSSH line, as the resource PublicKey takes it. */
export async function publicKeysOf(service: Connection, lookup: LookupOptions): Promise<PublicKey[]> {
  const keys = await collect((await clientOf(service, lookup)).iterate("getPublicKeys", PAGE));
  return keys.map((key) => ({ ...key, data: Buffer.from(key.data, "base64").toString("utf8").trim() }));
}

/** The firewall rules of a namespace, the lowest priority first. */
export async function firewallRulesOf(service: Connection, lookup: LookupOptions): Promise<FirewallRule[]> {
  return collect((await clientOf(service, lookup)).iterate("getFirewallRules", PAGE));
}

/** The API keys of a namespace, without their secrets. */
export async function apiKeysOf(service: Connection, lookup: LookupOptions): Promise<ApiKey[]> {
  return collect((await clientOf(service, lookup)).iterate("listApiKeys", PAGE));
}

/** The tags that devices, keys or rules of a namespace carry. */
export async function tagsOf(service: Connection, lookup: LookupOptions): Promise<string[]> {
  return (await clientOf(service, lookup)).getTags();
}
