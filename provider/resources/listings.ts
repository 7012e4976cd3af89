import { type Client, or, where } from "@gatehouse-access/sdk";
import { Listing, PAGE_SIZE, type Page, type Source } from "./listing.ts";
import { undefinedIfMissing } from "./missing.ts";

export type Namespace = Awaited<ReturnType<Client["getNamespace"]>>;
export type Device = Awaited<ReturnType<Client["getDevice"]>>;
export type PublicKey = Awaited<ReturnType<Client["getPublicKeys"]>>[number];
export type FirewallRule = Awaited<ReturnType<Client["getFirewallRule"]>>;
export type ApiKey = Awaited<ReturnType<Client["listApiKeys"]>>[number];

/** Namespaces that the credential's user is a member of, by tenant. */
export function namespaceListing(client: Client): Listing<Namespace> {
  return new Listing({
    keysOf: (namespace) => [namespace.tenantId],
    page: async (page) => pageOf(await client.call("getNamespaces", { query: { page, perPage: PAGE_SIZE } })),
    look: (tenant) => undefinedIfMissing(client.getNamespace({ params: { tenant } })),
  });
}

const UID = /^[0-9a-f]{64}$/;
const MAC = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/;

/** The key in a device listing that a selector (uid, MAC address or name, in lower case) means. */
export function deviceKey(selector: string): string {
  if (UID.test(selector)) return selector;
  return MAC.test(selector) ? `mac ${selector.replaceAll("-", ":")}` : `name ${selector}`;
}

const macOf = (device: Device) => device.identity.mac.toLowerCase().replaceAll("-", ":");

/** Devices of a namespace, by uid, MAC address and name; of several, the accepted one. */
export function deviceListing(client: Client): Listing<Device> {
  const source: Source<Device> = {
    keysOf: (device) => [device.uid, `mac ${macOf(device)}`, `name ${device.name.toLowerCase()}`],
    // By uid: heartbeats move a device in the usual order while pages are read.
    page: async (page) =>
      pageOf(
        await client.call("getDevices", {
          query: { page, perPage: PAGE_SIZE, sortBy: "uid", orderBy: "asc" },
        }),
      ),
    prefer: (left, right) => (left.status !== "accepted" && right.status === "accepted" ? right : left),
    look: (key) =>
      UID.test(key) ? undefinedIfMissing(client.getDevice({ params: { uid: key } })) : lookByText(key),
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
      if (source.keysOf(device).includes(key)) found = found ? source.prefer?.(found, device) : device;
    }
    return found;
  }
  return new Listing(source);
}

/** Public keys of a namespace, by fingerprint. The service has no request for a single key. */
export function publicKeyListing(client: Client): Listing<PublicKey> {
  return new Listing({
    keysOf: (key) => [key.fingerprint],
    page: async (page) => pageOf(await client.call("getPublicKeys", { query: { page, perPage: PAGE_SIZE } })),
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
export function ruleListing(client: Client): Listing<FirewallRule> {
  return new Listing({
    keysOf: (rule) => [rule.id],
    page: async (page) =>
      pageOf(await client.call("getFirewallRules", { query: { page, perPage: PAGE_SIZE } })),
    look: (id) => undefinedIfMissing(client.getFirewallRule({ params: { id } })),
  });
}

/** What never changes about an API key, whatever its name: it was made at this instant, by this user. */
export function apiKeyIdentity(key: { readonly createdAt: string; readonly createdBy: string }): string {
  return `${key.createdAt} ${key.createdBy}`;
}

/** API keys of a namespace, by what never changes about them, and by name. */
export function apiKeyListing(client: Client): Listing<ApiKey> {
  const keysOf = (key: ApiKey) => [apiKeyIdentity(key), key.name];
  const query = { sortBy: "created_at", orderBy: "asc", perPage: PAGE_SIZE } as const;
  return new Listing({
    keysOf,
    page: async (page) => pageOf(await client.call("listApiKeys", { query: { ...query, page } })),
    // The service has no request for a single one.
    async look(wanted) {
      for await (const key of client.iterate("listApiKeys", { query })) {
        if (keysOf(key).includes(wanted)) return key;
      }
      return undefined;
    },
  });
}

function pageOf<T>({
  headers,
  body,
}: {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly T[];
}): Page<T> {
  return { items: body, total: Number(headers["x-total-count"] ?? body.length) };
}
