import type { Filter } from "@gatehouse-access/sdk";
import * as pulumi from "@pulumi/pulumi";
import { perRun } from "../pulumi/perRun.ts";
import type { Connection, TenantClient } from "../resources/connection.ts";
import type { ApiKey, Device, FirewallRule, Namespace, PublicKey } from "../resources/listings.ts";

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

const PAGE = { perPage: 100, sortBy: "uid", orderBy: "asc" } as const;

// Loaded by the first lookup: most programs need no client, which would slow their start.
const sdk = () => import("@gatehouse-access/sdk");

// Each run of a program has its own settings.
const serviceOfRun = perRun("lookups", connect);

async function connect(): Promise<Connection> {
  const settings = new pulumi.Config("gatehouse");
  const { newConnection } = await import("../pulumi/newConnection.ts");
  return newConnection((key) => settings.get(key.slice("gatehouse:".length)));
}

function ask<T>({ tenant }: LookupOptions, question: (opened: TenantClient) => Promise<T>): Promise<T> {
  return asking(async (service) => question(await service.tenant(tenant)));
}

async function asking<T>(question: (service: Connection) => Promise<T>): Promise<T> {
  const service = await (serviceOfRun() ?? connect());
  return service.telling(console.log, () => question(service));
}

async function allOf([first, ...others]: readonly Filter[]): Promise<{ filter?: Filter }> {
  const { and } = await sdk();
  return first ? { filter: and(first, ...others) } : {};
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/**
 * The devices of a namespace. Like every lookup it asks the service while the program runs: it sees what was there
 * before this run, and not what the run itself makes or changes.
 */
export async function getDevices(lookup: DeviceLookup = {}): Promise<Device[]> {
  const { where } = await sdk();
  const { tags, status, name, online } = lookup;
  const conditions: Filter[] = [
    ...(tags?.length ? [where("tags").contains(tags)] : []),
    ...(name === undefined ? [] : [where("name").eq(name.toLowerCase())]),
    ...(online === undefined ? [] : [where("online").bool(online)]),
  ];
  const query = { ...PAGE, ...(status && { status }), ...(await allOf(conditions)) };
  return ask(lookup, ({ client }) => collect(client.iterate("getDevices", { query })));
}

/**
 * A namespace with its members, by tenant or by name; without either, the stack's namespace.
 * @throws Error when there is none
 */
export async function getNamespace(
  lookup: LookupOptions & { readonly name?: string } = {},
): Promise<Namespace> {
  const { name } = lookup;
  if (name === undefined) {
    return ask(lookup, ({ tenant, client }) => client.getNamespace({ params: { tenant } }));
  }
  const { where } = await sdk();
  const query = { filter: where("name").eq(name.toLowerCase()), perPage: 100 };
  const found = await asking(({ client }) => collect(client.iterate("getNamespaces", { query })));
  const namespace = found.find((candidate) => candidate.name === name.toLowerCase());
  if (!namespace) throw new Error(`getNamespace: the credential's user is in no namespace called "${name}"`);
  // Every namespace has its owner as a member; lists of newer services leave the members out.
  return namespace.members.length > 0 ? namespace : getNamespace({ tenant: namespace.tenantId });
}

/** The members of a namespace, the owner among them. */
export async function getMembers(lookup: LookupOptions = {}): Promise<Namespace["members"]> {
  return (await getNamespace({ ...lookup })).members;
}

/** The public keys of a namespace, oldest first; `data` is the OpenSSH line, as the resource PublicKey takes it. */
export async function getPublicKeys(lookup: LookupOptions = {}): Promise<PublicKey[]> {
  const keys = await ask(lookup, ({ client }) =>
    collect(client.iterate("getPublicKeys", { query: { perPage: 100 } })),
  );
  return keys.map((key) => ({ ...key, data: Buffer.from(key.data, "base64").toString("utf8").trim() }));
}

/** The firewall rules of a namespace, the lowest priority first. */
export async function getFirewallRules(lookup: LookupOptions = {}): Promise<FirewallRule[]> {
  return ask(lookup, ({ client }) =>
    collect(client.iterate("getFirewallRules", { query: { perPage: 100 } })),
  );
}

/** The API keys of a namespace, without their secrets. */
export async function getApiKeys(lookup: LookupOptions = {}): Promise<ApiKey[]> {
  return ask(lookup, ({ client }) => collect(client.iterate("listApiKeys", { query: { perPage: 100 } })));
}

/** The tags that devices, keys or rules of a namespace carry. */
export async function getTags(lookup: LookupOptions = {}): Promise<string[]> {
  return ask(lookup, ({ client }) => client.getTags());
}

type Given<T> = T extends readonly (infer Item)[] ? readonly pulumi.Input<Item>[] : T;

/** What a lookup takes, in which each part may also be an output. */
export type LookupInputs<Lookup> = { readonly [Part in keyof Lookup]: pulumi.Input<Given<Lookup[Part]>> };

/** The form of a lookup for outputs: it asks once all that it is given is known. */
const withOutputs =
  <Lookup extends object, Found>(ask: (lookup?: Lookup) => Promise<Found>) =>
  (lookup?: LookupInputs<Lookup>): pulumi.Output<Found> =>
    pulumi.output(lookup ?? {}).apply((known) => ask(known as Lookup));

/** {@link getDevices} for outputs. */
export const getDevicesOutput = withOutputs(getDevices);
/** {@link getNamespace} for outputs. */
export const getNamespaceOutput = withOutputs(getNamespace);
/** {@link getMembers} for outputs. */
export const getMembersOutput = withOutputs(getMembers);
/** {@link getPublicKeys} for outputs. */
export const getPublicKeysOutput = withOutputs(getPublicKeys);
/** {@link getFirewallRules} for outputs. */
export const getFirewallRulesOutput = withOutputs(getFirewallRules);
/** {@link getApiKeys} for outputs. */
export const getApiKeysOutput = withOutputs(getApiKeys);
/** {@link getTags} for outputs. */
export const getTagsOutput = withOutputs(getTags);
