import {
  type Client,
  isNotFound,
  NotFoundError,
  or,
  type Page,
  PermissionError,
  where,
} from "@gatehouse-access/sdk";
import { type Operation, operations } from "@gatehouse-access/sdk/contract";
import { ResourceError, said } from "../resourceError.ts";

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

/** Where a {@link Listing} reads from. */
export interface Source<T> {
  /** Names under which an object can be found; the first is its id. */
  keysOf(item: T): readonly string[];
  /** All objects, in pages of {@link PAGE_SIZE} and in an order that does not change while they are read. */
  pages(): AsyncIterator<Page<T>>;
  /** The object of this name, by a request of its own; undefined, or a NotFoundError, when there is none. */
  look(key: string): Promise<T | undefined>;
  /**
   * Which of two objects the name that they share means; undefined for neither, so that {@link look} decides.
   * @default the first
   */
  prefer?(left: T, right: T): T | undefined;
  /** Rejects when the namespace of the objects cannot be read: then nothing is known of them. */
  requireReadable?(): Promise<unknown>;
}

/** Objects on a page of a list. */
export const PAGE_SIZE = 100;

/** Milliseconds in which reads are gathered, before it is decided whether to list all objects. */
const WINDOW = 20;
/** Up to so many reads are answered one by one, without asking how long the list is. */
const FEW = 5;
/** A run that asks for n objects will ask for more, so the list may cost this many times n requests. */
const EXPECTED = 4;

/**
 * Objects of one kind in a namespace, for all resources of a run. A few are read one by one, many by listing all of
 * them: 5 of 100,000 are 5 requests, 1,000 of 1,000 are 10. An object that is not in the list is looked for by itself
 * too, since pages shift while objects come and go.
 */
export class Listing<T> {
  readonly #source: Source<T>;
  readonly #found = new Map<string, Promise<T | undefined>>();
  #waiting = new Map<string, PromiseWithResolvers<T | undefined>>();
  #all: Promise<ReadonlyMap<string, T | undefined>> | undefined;
  /** A list whose first page was read, to see how long it is. */
  #begun: Begun<T> | undefined;
  #asked = 0;

  constructor(source: Source<T>) {
    this.#source = source;
  }

  /** The object of this name, as the run knows it or as the service says; undefined when there is none. */
  find(key: string): Promise<T | undefined> {
    const known = this.#found.get(key);
    if (known) return known;
    const answer = this.#all ? this.#fromAll(this.#all, key) : this.#gather(key);
    this.#remember(key, answer);
    return answer;
  }

  /** All objects. */
  async all(): Promise<T[]> {
    const all = await this.#listOnce();
    return [...new Set(all.values())].filter((item) => item !== undefined);
  }

  /** Takes an object as it is after a write, so that a later read does not ask for it. */
  put(item: T): void {
    for (const key of this.#source.keysOf(item)) this.#found.set(key, Promise.resolve(item));
  }

  /** Forgets all that was read, so that the next read asks the service. */
  forget(): void {
    this.#found.clear();
    this.#all = undefined;
    this.#begun = undefined;
  }

  /** Takes note that an object was removed, given by itself or by one of its names. */
  drop(removed: string | T): void {
    const keys = typeof removed === "string" ? [removed] : this.#source.keysOf(removed);
    for (const key of keys) this.#found.set(key, Promise.resolve(undefined));
  }

  // A failure is forgotten, so that the next read tries again.
  #remember(key: string, answer: Promise<T | undefined>): void {
    this.#found.set(key, answer);
    answer.catch(() => {
      if (this.#found.get(key) === answer) this.#found.delete(key);
    });
  }

  #gather(key: string): Promise<T | undefined> {
    // Somebody may wait for this name already: `forget` does not end the reads that are being gathered.
    const known = this.#waiting.get(key);
    if (known) return known.promise;
    if (this.#waiting.size === 0) setTimeout(() => void this.#answer(), WINDOW);
    const waiting = Promise.withResolvers<T | undefined>();
    this.#waiting.set(key, waiting);
    return waiting.promise;
  }

  async #answer(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = new Map();
    this.#asked += batch.size;
    try {
      const all = (await this.#listIsCheaper()) ? await this.#listOnce() : undefined;
      for (const [key, { resolve }] of batch) resolve(all ? this.#fromAll(all, key) : this.#look(key));
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    }
  }

  async #listIsCheaper(): Promise<boolean> {
    if (this.#all) return true;
    if (this.#asked <= FEW) return false;
    const { total } = await this.#begin().first;
    // A server that does not say how long its lists are has no cheaper way to single objects.
    return total === undefined || Math.ceil(total / PAGE_SIZE) <= this.#asked * EXPECTED;
  }

  #begin(): Begun<T> {
    if (!this.#begun) {
      const pages = this.#source.pages();
      const begun = { pages, first: pages.next().then(pageOf) };
      this.#begun = begun;
      begun.first.catch(() => {
        if (this.#begun === begun) this.#begun = undefined;
      });
    }
    return this.#begun;
  }

  #listOnce(): Promise<ReadonlyMap<string, T | undefined>> {
    if (!this.#all) {
      const all = this.#list();
      this.#all = all;
      all.catch(() => {
        if (this.#all === all) this.#all = undefined;
      });
    }
    return this.#all;
  }

  async #list(): Promise<ReadonlyMap<string, T | undefined>> {
    const found = new Map<string, T | undefined>();
    const { pages, first } = this.#begin();
    this.#begun = undefined;
    this.#add(found, (await first).items);
    for (let next = await pages.next(); !next.done; next = await pages.next()) {
      this.#add(found, next.value.items);
    }
    return found;
  }

  #add(found: Map<string, T | undefined>, items: readonly T[]): void {
    const prefer = this.#source.prefer ?? ((left: T) => left);
    for (const item of items) {
      for (const key of this.#source.keysOf(item)) {
        const other = found.get(key);
        if (other !== undefined) found.set(key, prefer(other, item));
        else if (!found.has(key)) found.set(key, item);
      }
    }
  }

  async #fromAll(
    all: ReadonlyMap<string, T | undefined> | Promise<ReadonlyMap<string, T | undefined>>,
    key: string,
  ): Promise<T | undefined> {
    return (await all).get(key) ?? this.#look(key);
  }

  #look(key: string): Promise<T | undefined> {
    return undefinedIfMissing(this.#source.look(key), async () => {
      await this.#source.requireReadable?.();
      return (await this.#listOnce()).has(key);
    });
  }
}

interface Begun<T> {
  readonly pages: AsyncIterator<Page<T>>;
  readonly first: Promise<Page<T>>;
}

const pageOf = <T>({ value, done }: IteratorResult<Page<T>>): Page<T> =>
  done ? { items: [], total: 0 } : value;

/**
 * True for a 404 to the request for a namespace's token. It does not say that an object is gone: the service answers so
 * when there is no such namespace, but also when the user is no member of it (any more).
 */
export function isNoToken(error: unknown): boolean {
  return isNotFound(error) && error.operation === "getNamespaceToken";
}

/**
 * True for a 404 to a request that names an object: there is none. Lists and logins name none, so a 404 to them comes
 * from something else, such as a proxy.
 */
export function isMissingObject(error: unknown): error is NotFoundError {
  return isNotFound(error) && !isNoToken(error) && namesObject(error.operation);
}

function namesObject(id: string): boolean {
  const { path } = (operations as Readonly<Record<string, Operation>>)[id] ?? {};
  return path?.includes("{") ?? false;
}

/**
 * True for a 404 without a message. Some servers send most errors so; but a proxy before the service does so too, and
 * then the object may well be there.
 */
export const isSilent = ({ serverMessage }: NotFoundError): boolean => serverMessage === undefined;

/**
 * The answer, or undefined where there is no such object.
 * @param isThere called after a 404 without a message: true when the object is there all the same
 */
export async function undefinedIfMissing<T>(
  answer: Promise<T>,
  isThere: () => Promise<boolean>,
): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (!isMissingObject(error) || (isSilent(error) && (await isThere()))) throw error;
    return undefined;
  }
}

/** True if the credential may not read something, or the service does not have it. */
export const isUnreadable = (error: unknown): error is PermissionError | NotFoundError =>
  error instanceof PermissionError || error instanceof NotFoundError;
