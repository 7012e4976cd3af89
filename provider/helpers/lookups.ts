import * as pulumi from "@pulumi/pulumi";
import { perRun } from "../providers/dynamic/classInputs.ts";
import type { Connection } from "../service/connection.ts";
import type { ApiKey, Device, FirewallRule, Namespace, PublicKey } from "../service/listings.ts";
import type * as lookups from "../service/lookups.ts";
import type { DeviceLookup, LookupOptions, NamespaceLookup } from "../service/lookups.ts";

export type { DeviceLookup, LookupOptions, NamespaceLookup };

// Each run of a program has its own settings.
const serviceOfRun = perRun("lookups", connect);

async function connect(): Promise<Connection> {
  const settings = new pulumi.Config("gatehouse");
  const { newConnection } = await import("../service/newConnection.ts");
  return newConnection((key) => settings.get(key.slice("gatehouse:".length)), { tell: console.log });
}

/** Asks the service of the run. What asks is loaded by the first lookup: it would slow the start of most programs. */
async function ask<T>(question: (all: typeof lookups, service: Connection) => Promise<T>): Promise<T> {
  const [all, service] = await Promise.all([import("../service/lookups.ts"), serviceOfRun() ?? connect()]);
  return service.telling(console.log, () => question(all, service));
}

/**
 * The devices of a namespace. Like every lookup it asks the service while the program runs: it sees what was there
 * before this run, and not what the run itself makes or changes.
 */
export async function getDevices(lookup: DeviceLookup = {}): Promise<Device[]> {
  return ask(({ devicesOf }, service) => devicesOf(service, lookup));
}

/**
 * A namespace with its members, by tenant or by name; without either, the stack's namespace.
 * @throws Error when there is none
 */
export async function getNamespace(lookup: NamespaceLookup = {}): Promise<Namespace> {
  return ask(({ namespaceOf }, service) => namespaceOf(service, lookup));
}

/** The members of a namespace, the owner among them. */
export async function getMembers(lookup: LookupOptions = {}): Promise<Namespace["members"]> {
  return ask(({ membersOf }, service) => membersOf(service, lookup));
}

/** The public keys of a namespace, oldest first; `data` is the OpenSSH line, as the resource PublicKey takes it. */
export async function getPublicKeys(lookup: LookupOptions = {}): Promise<PublicKey[]> {
  return ask(({ publicKeysOf }, service) => publicKeysOf(service, lookup));
}

/** The firewall rules of a namespace, the lowest priority first. */
export async function getFirewallRules(lookup: LookupOptions = {}): Promise<FirewallRule[]> {
  return ask(({ firewallRulesOf }, service) => firewallRulesOf(service, lookup));
}

/** The API keys of a namespace, without their secrets. */
export async function getApiKeys(lookup: LookupOptions = {}): Promise<ApiKey[]> {
  return ask(({ apiKeysOf }, service) => apiKeysOf(service, lookup));
}

/** The tags that devices, keys or rules of a namespace carry. */
export async function getTags(lookup: LookupOptions = {}): Promise<string[]> {
  return ask(({ tagsOf }, service) => tagsOf(service, lookup));
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
