import * as pulumi from "@pulumi/pulumi";
import type { Connection } from "../service/connection.ts";
import type { ApiKey, Device, FirewallRule, Namespace, PublicKey } from "../service/listings.ts";
import type * as lookups from "../service/lookups.ts";
import type { DeviceLookup, LookupOptions, NamespaceLookup } from "../service/lookups.ts";
import { perRun } from "./perRun.ts";

export type { DeviceLookup, LookupOptions, NamespaceLookup };

// The settings belong to one run of a Pulumi program, so each run gets a separate connection.
const serviceOfRun = perRun("lookups", connect);

async function connect(): Promise<Connection> {
  const settings = new pulumi.Config("gatehouse");
  const { newConnection } = await import("../service/newConnection.ts");
  return newConnection((key) => settings.get(key.slice("gatehouse:".length)), { tell: console.log });
}

/**
 * Runs a lookup on the Gatehouse service of the current program run. The first call loads the lookup code, so that
 * programs without lookups start faster.
 */
async function query<T>(lookup: (all: typeof lookups, service: Connection) => Promise<T>): Promise<T> {
  const [all, service] = await Promise.all([import("../service/lookups.ts"), serviceOfRun() ?? connect()]);
  return service.telling(console.log, () => lookup(all, service));
}

/**
 * Returns the devices of a namespace. Every lookup queries the service while the program runs. So the result does not
 * contain the changes of this run.
 */
export async function getDevices(lookup: DeviceLookup = {}): Promise<Device[]> {
  return query(({ devicesOf }, service) => devicesOf(service, lookup));
}

/**
 * Returns a namespace with its members. `tenant` or `name` selects the namespace. Without them, returns the stack's
 * namespace.
 * @throws Error if the namespace does not exist
 */
export async function getNamespace(lookup: NamespaceLookup = {}): Promise<Namespace> {
  return query(({ namespaceOf }, service) => namespaceOf(service, lookup));
}

/** Returns the members of a namespace, including the owner. */
export async function getMembers(lookup: LookupOptions = {}): Promise<Namespace["members"]> {
  return query(({ membersOf }, service) => membersOf(service, lookup));
}

/**
 * Returns the public keys of a namespace, oldest first. `data` is an OpenSSH line, in the form that `PublicKey`
 * accepts.
 */
export async function getPublicKeys(lookup: LookupOptions = {}): Promise<PublicKey[]> {
  return query(({ publicKeysOf }, service) => publicKeysOf(service, lookup));
}

/** Returns the firewall rules of a namespace, lowest priority first. */
export async function getFirewallRules(lookup: LookupOptions = {}): Promise<FirewallRule[]> {
  return query(({ firewallRulesOf }, service) => firewallRulesOf(service, lookup));
}

/** Returns the API keys of a namespace, without their secrets. */
export async function getApiKeys(lookup: LookupOptions = {}): Promise<ApiKey[]> {
  return query(({ apiKeysOf }, service) => apiKeysOf(service, lookup));
}

/** Returns the tags of all devices, keys and rules of a namespace. */
export async function getTags(lookup: LookupOptions = {}): Promise<string[]> {
  return query(({ tagsOf }, service) => tagsOf(service, lookup));
}

type Given<T> = T extends readonly (infer Item)[] ? readonly pulumi.Input<Item>[] : T;

/** The arguments of a lookup. Each argument can be an output. */
export type LookupInputs<Lookup> = { readonly [Part in keyof Lookup]: pulumi.Input<Given<Lookup[Part]>> };

/**
 * Returns a variant of a lookup that accepts outputs as arguments. The variant queries the service after all arguments
 * are known.
 */
const withOutputs =
  <Lookup extends object, Found>(query: (lookup?: Lookup) => Promise<Found>) =>
  (lookup?: LookupInputs<Lookup>): pulumi.Output<Found> =>
    pulumi.output(lookup ?? {}).apply((known) => query(known as Lookup));

/** Variant of {@link getDevices} that accepts outputs as arguments. */
export const getDevicesOutput = withOutputs(getDevices);
/** Variant of {@link getNamespace} that accepts outputs as arguments. */
export const getNamespaceOutput = withOutputs(getNamespace);
/** Variant of {@link getMembers} that accepts outputs as arguments. */
export const getMembersOutput = withOutputs(getMembers);
/** Variant of {@link getPublicKeys} that accepts outputs as arguments. */
export const getPublicKeysOutput = withOutputs(getPublicKeys);
/** Variant of {@link getFirewallRules} that accepts outputs as arguments. */
export const getFirewallRulesOutput = withOutputs(getFirewallRules);
/** Variant of {@link getApiKeys} that accepts outputs as arguments. */
export const getApiKeysOutput = withOutputs(getApiKeys);
/** Variant of {@link getTags} that accepts outputs as arguments. */
export const getTagsOutput = withOutputs(getTags);
