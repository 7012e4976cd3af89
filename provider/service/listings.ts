import { type Client, or, where } from "@gatehouse-access/sdk";
import { ResourceError, said } from "../resourceError.ts";
import { Listing, PAGE_SIZE, type Source } from "./listing.ts";

/** A namespace, as the service answers. */
export type Namespace = Awaited<ReturnType<Client["getNamespace"]>>;
/** A device, as the service answers. */
export type Device = Awaited<ReturnType<Client["getDevice"]>>;
/** A public key, as the service answers. */
export type PublicKey = Awaited<ReturnType<Client["getPublicKeys"]>>[number];
/** A firewall rule, as the service answers. */
export type FirewallRule = Awaited<ReturnType<Client["getFirewallRule"]>>;
/** An API key, as the service lists it. */
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

/** The name in a device listing for a selector: a uid, MAC address or device name, in lower case. */
export function deviceKey(selector: string): string {
  if (UID.test(selector)) return selector;
  return MAC.test(selector) ? `mac ${selector.replaceAll("-", ":")}` : `name ${selector}`;
}

/** A device's MAC address, as listings write it. */
export const macOf = (device: Pick<Device, "identity">): string =>
  device.identity.mac.toLowerCase().replaceAll("-", ":");

/** The names of a device in a device listing; see {@link deviceKey}. */
const keysOfDevice = (device: Device): string[] => [
  device.uid,
  `mac ${macOf(device)}`,
  `name ${device.name.toLowerCase()}`,
];

/** The one of two devices that the name or MAC address means which they share: the accepted one, or else the first. */
const meantDevice = (left: Device, right: Device): Device =>
  left.status !== "accepted" && right.status === "accepted" ? right : left;

/** Devices that were read already, by the same names as in {@link deviceListing}. */
export function devicesByKey(devices: readonly Device[]): ReadonlyMap<string, Device> {
  const found = new Map<string, Device>();
  for (const device of devices) {
    for (const key of keysOfDevice(device)) found.set(key, meantDevice(found.get(key) ?? device, device));
  }
  return found;
}

/** Devices of a namespace, by uid, MAC address and name; of several with one name, the accepted one. */
export function deviceListing(client: Client, tenant: string): Listing<Device> {
  const source: Source<Device> = {
    keysOf: keysOfDevice,
    // By uid, since reports of devices change the usual order while pages are read.
    pages: () => client.pages("getDevices", { query: { perPage: PAGE_SIZE, sortBy: "uid", orderBy: "asc" } }),
    requireReadable: () => client.getNamespace({ params: { tenant } }),
    prefer: meantDevice,
    look: (key) => (UID.test(key) ? client.getDevice({ params: { uid: key } }) : lookByText(key)),
  };
  async function lookByText(key: string): Promise<Device | undefined> {
    const [kind = "", text = ""] = key.split(" ");
    // The service keeps a MAC address as the agent sent it: with either separator, in any letter case.
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

/** What identifies an API key, whatever its name is by now. */
export interface KeyIdentity {
  readonly createdAt: string;
  /** Absent in states that were written when not all servers' answers were understood. */
  readonly createdBy?: string | undefined;
}

/**
 * What never changes about an API key, as text: when it was made, and by whom. The time is cut to milliseconds, since
 * servers answer a creation with a finer time than they keep.
 */
export function apiKeyIdentity({ createdAt, createdBy }: KeyIdentity): string {
  const time = Date.parse(createdAt);
  return `${Number.isNaN(time) ? createdAt : new Date(time).toISOString()} ${createdBy ?? "somebody"}`;
}

/** API keys of a namespace, by identity and name, by identity, by time of creation, and by name. */
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
    // The service has no request for a single key.
    async look(wanted) {
      const found: ApiKey[] = [];
      for await (const key of client.iterate("listApiKeys", { query })) {
        if (keysOf(key).includes(wanted)) found.push(key);
      }
      if (found.length > 1) throw undistinguished(found);
      return found[0];
    },
  });
}

const undistinguished = (keys: readonly ApiKey[]) =>
  new ResourceError("ApiKey", {
    code: "ambiguous_object",
    detail: said`the keys ${keys.map(({ name }) => `"${name}"`).join(" and ")} were made in the same millisecond, so that nothing tells which one is meant`,
    remedy: said`revoke both by hand, and ${{ phrase: "refresh" }}`,
  });
