import { type Client, or, where } from "@gatehouse-access/sdk";
import { Listing, PAGE_SIZE, type Source } from "./listing.ts";

export type Namespace = Awaited<ReturnType<Client["getNamespace"]>>;
export type Device = Awaited<ReturnType<Client["getDevice"]>>;
export type PublicKey = Awaited<ReturnType<Client["getPublicKeys"]>>[number];
export type FirewallRule = Awaited<ReturnType<Client["getFirewallRule"]>>;
export type ApiKey = Awaited<ReturnType<Client["listApiKeys"]>>[number];

/** Namespaces that the credential's user is a member of, by tenant. */
export function namespaceListing(client: Client): Listing<Namespace> {
  return new Listing({
    keysOf: (namespace) => [namespace.tenantId],
    pages: () => client.pages("getNamespaces", { query: { perPage: PAGE_SIZE } }),
    look: (tenant) => client.getNamespace({ params: { tenant } }),
  });
}

const UID = /^[0-9a-f]{64}$/;
const MAC = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/;

/** The key in a device listing that a selector (uid, MAC address or name, in lower case) means. */
export function deviceKey(selector: string): string {
  if (UID.test(selector)) return selector;
  return MAC.test(selector) ? `mac ${selector.replaceAll("-", ":")}` : `name ${selector}`;
}

/** Its MAC address as listings know it. */
export const macOf = (device: Pick<Device, "identity">): string =>
  device.identity.mac.toLowerCase().replaceAll("-", ":");

/** What a device can be asked for by; see {@link deviceKey}. */
const keysOfDevice = (device: Device): string[] => [
  device.uid,
  `mac ${macOf(device)}`,
  `name ${device.name.toLowerCase()}`,
];

/** Which of two devices of one name or MAC address is meant: the accepted one, or else the first. */
const meantDevice = (left: Device, right: Device): Device =>
  left.status !== "accepted" && right.status === "accepted" ? right : left;

/** Devices that were read already, by the same keys and rules as {@link deviceListing} finds them. */
export function devicesByKey(devices: readonly Device[]): ReadonlyMap<string, Device> {
  const found = new Map<string, Device>();
  for (const device of devices) {
    for (const key of keysOfDevice(device)) found.set(key, meantDevice(found.get(key) ?? device, device));
  }
  return found;
}

/** Devices of a namespace, by uid, MAC address and name; of several, the accepted one. */
export function deviceListing(client: Client, tenant: string): Listing<Device> {
  const source: Source<Device> = {
    keysOf: keysOfDevice,
    // By uid: heartbeats move a device in the usual order while pages are read.
    pages: () => client.pages("getDevices", { query: { perPage: PAGE_SIZE, sortBy: "uid", orderBy: "asc" } }),
    requireReadable: () => client.getNamespace({ params: { tenant } }),
    prefer: meantDevice,
    look: (key) => (UID.test(key) ? client.getDevice({ params: { uid: key } }) : lookByText(key)),
  };
  async function lookByText(key: string): Promise<Device | undefined> {
    const [kind = "", text = ""] = key.split(" ");
    // A MAC address is kept as the agent sent it: with either separator, in any case.
    const mac = where("identity.mac");
    const filter =
      kind === "mac"
        ? or(mac.contains(text), mac.contains(text.replaceAll(":", "-")))
        : where("name").eq(text);
    const query = { filter, perPage: PAGE_SIZE, sortBy: "uid", orderBy: "asc" } as const;
    let found: Device | undefined;
    for await (const device of client.iterate("getDevices", { query })) {
      if (keysOfDevice(device).includes(key)) found = meantDevice(found ?? device, device);
    }
    return found;
  }
  return new Listing(source);
}

/** Public keys of a namespace, by fingerprint. The service has no request for a single key. */
export function publicKeyListing(client: Client): Listing<PublicKey> {
  return new Listing({
    keysOf: (key) => [key.fingerprint],
    pages: () => client.pages("getPublicKeys", { query: { perPage: PAGE_SIZE } }),
    // Servers that ignore the filter answer with every key, so the answer is searched to its end.
    async look(fingerprint) {
      const query = { filter: where("fingerprint").eq(fingerprint), perPage: PAGE_SIZE };
      for await (const key of client.iterate("getPublicKeys", { query })) {
        if (key.fingerprint === fingerprint) return key;
      }
      return undefined;
    },
  });
}

/** Firewall rules of a namespace, by id. */
export function ruleListing(client: Client, tenant: string): Listing<FirewallRule> {
  return new Listing({
    keysOf: (rule) => [rule.id],
    pages: () => client.pages("getFirewallRules", { query: { perPage: PAGE_SIZE } }),
    requireReadable: () => client.getNamespace({ params: { tenant } }),
    look: (id) => client.getFirewallRule({ params: { id } }),
  });
}

/** What tells an API key from others, whatever its name is by now. */
export interface KeyIdentity {
  readonly createdAt: string;
  /** Left out by states of a time when not every server's answer was understood. */
  readonly createdBy?: string | undefined;
}

/**
 * What never changes about an API key: it was made at this instant, by this user. Servers answer a creation with a finer
 * time than they keep.
 */
export function apiKeyIdentity({ createdAt, createdBy }: KeyIdentity): string {
  const time = Date.parse(createdAt);
  return `${Number.isNaN(time) ? createdAt : new Date(time).toISOString()} ${createdBy ?? "somebody"}`;
}

/** API keys of a namespace, by what never changes about them, also together with the name, and by name. */
export function apiKeyListing(client: Client): Listing<ApiKey> {
  const keysOf = (key: ApiKey) => {
    const identity = apiKeyIdentity(key);
    return [`${identity} ${key.name}`, identity, apiKeyIdentity({ createdAt: key.createdAt }), key.name];
  };
  const query = { sortBy: "created_at", orderBy: "asc", perPage: PAGE_SIZE } as const;
  return new Listing({
    keysOf,
    pages: () => client.pages("listApiKeys", { query }),
    prefer: () => undefined,
    // The service has no request for a single one.
    async look(wanted) {
      const found: ApiKey[] = [];
      for await (const key of client.iterate("listApiKeys", { query })) {
        if (keysOf(key).includes(wanted)) found.push(key);
      }
      if (found.length > 1) throw new Error(`ApiKey: ${undistinguished(found)}`);
      return found[0];
    },
  });
}

const undistinguished = (keys: readonly ApiKey[]) =>
  `the keys ${keys.map(({ name }) => `"${name}"`).join(" and ")} were made in the same millisecond, so that nothing tells which one is meant; revoke both by hand, and run with --refresh`;
