import { setTimeout as wait } from "node:timers/promises";
import {
  type Client,
  NotFoundError,
  PermissionError,
  RequestError,
  type ResponseHeaders,
} from "@gatehouse-access/sdk";
import { PromiseCache } from "@gatehouse-access/sdk/promises";
import {
  completeList,
  type Doubt,
  doubtAbout,
  doubtOf,
  isMissingObject,
  isProvenMissing,
  type ListedPage,
  requireAbsent,
  requireLength,
} from "./absence.ts";

/** A namespace, as the service returns it. */
export type Namespace = Awaited<ReturnType<Client["getNamespace"]>>;

/**
 * Returns true for a service account. Newer services list service accounts among the members, although they are not
 * users.
 */
export const isServiceAccount = ({ type }: { readonly type?: string }): boolean => type === "service";

/** A device, as the service returns it. */
export type Device = Awaited<ReturnType<Client["getDevice"]>>;
/** A public key, as the service returns it. */
export type PublicKey = Awaited<ReturnType<Client["getPublicKeys"]>>[number];
/** A firewall rule, as the service returns it. */
export type FirewallRule = Awaited<ReturnType<Client["getFirewallRule"]>>;
/** An API key in a list of the service. */
export type ApiKey = Awaited<ReturnType<Client["listApiKeys"]>>[number];

/** A trusted workload, as the service returns it. */
export type TrustedWorkload = Awaited<ReturnType<Client["getTrustedWorkload"]>>;

/**
 * Returns a cached list of the namespaces of the credential's user. The lookup key is the namespace id. A workload has
 * a separate session in each namespace, and reads the namespace with this session.
 */
export function namespaceListing(client: Client): Listing<Namespace> {
  return new Listing({
    kind: "Namespace",
    keysOf: (namespace) => [namespace.tenantId],
    pages: () => client.pages("getNamespaces", { query: { perPage: PAGE_SIZE } }),
    async look(tenant) {
      const { workloadId } = await client.identity();
      const reader = workloadId === undefined ? client : client.forTenant(tenant);
      return reader.getNamespace({ params: { tenant } });
    },
  });
}

/**
 * Returns the length of a list that the service returns without pages. Returns undefined for an empty list if the
 * service does not report its length.
 */
export const lengthOf = (items: readonly unknown[], headers: ResponseHeaders): number | undefined =>
  items.length > 0 || headers["x-total-count"] === "0" ? items.length : undefined;

/** Returns the lookup key for the name of an object, in listings of objects with unique names. */
export const keyOfName = (name: string): string => `name ${name}`;

/**
 * Returns the source of the objects of one kind in a namespace. All resources of a run share the listing of the source.
 */
export type ListingSource<T> = (client: Client, tenant: string) => Source<T>;

/** The source of a {@link Listing}: the requests that read the objects of one kind. */
export interface Source<T> {
  /** The resource type of the objects, for errors. */
  readonly kind: string;
  /** Returns the lookup keys of an object. The first lookup key identifies the object. */
  keysOf(item: T): readonly string[];
  /** Returns all objects in pages of {@link PAGE_SIZE}. Their order does not change while the pages are read. */
  pages(): AsyncIterator<ListedPage<T>>;
  /**
   * Lists only the objects whose first lookup keys are in `keys`. Used for kinds that can have many thousands of
   * objects in a namespace.
   * @default lists all objects
   */
  among?(keys: readonly string[]): AsyncIterator<ListedPage<T>>;
  /**
   * Requests the object with this lookup key separately. Returns undefined only if a complete list does not contain the
   * object. Rejects with a NotFoundError for a 404, because a proxy may have sent it.
   */
  look(key: string): Promise<T | undefined>;
  /**
   * Returns the preferred object of two objects with the same lookup key. Returns undefined if neither is preferred, so
   * that {@link look} determines the result.
   * @default the first object
   */
  prefer?(left: T, right: T): T | undefined;
  /**
   * Rejects if the credential has no permission to read the objects' namespace. Without this permission, an empty
   * result does not prove that an object does not exist.
   */
  requireReadable?(): Promise<unknown>;
}

/** The number of objects on a page of a list. */
export const PAGE_SIZE = 100;

/**
 * The time during which reads are collected, in milliseconds. After this time, the listing decides whether to list all
 * objects.
 */
const WINDOW = 20;
/**
 * The maximum number of reads that are sent individually. For more reads, the length of the list is requested first.
 */
const FEW = 5;
/**
 * The maximum number of list requests for each requested object. If listing all objects takes more requests, the
 * objects are requested individually. The maximum is greater than 1, because a run that reads some objects usually
 * reads more objects later.
 */
const EXPECTED = 4;
/** The maximum length of a list that is read completely to prove that an object does not exist. */
const WHOLE = 5 * PAGE_SIZE;

/**
 * The objects of one kind in a namespace, shared by all resources of a run. A few objects are requested individually: 5
 * of 100,000 objects take 5 requests. For many objects, all objects are listed: 1,000 of 1,000 objects take 10
 * requests. An object that is missing in the list is also requested individually, because objects move between pages
 * while other objects are created and deleted.
 */
export class Listing<T> {
  readonly #source: Source<T>;
  readonly #found = new PromiseCache<string, T | undefined>();
  #waiting = new Map<string, PromiseWithResolvers<T | undefined>>();
  #all: Promise<ReadonlyMap<string, T | undefined>> | undefined;
  /** A list of which only the first page was read, to get the length of the list. */
  #started: StartedList<T> | undefined;
  #requested = 0;
  /**
   * The fields that the run changed, by the first lookup key of the object. Cached reads may contain the earlier
   * values.
   */
  readonly #changes = new Map<string, Partial<T>>();
  /** The first lookup keys of objects that the run deleted. Cached reads may still contain these objects. */
  readonly #removed = new Set<string>();
  /** The first lookup keys of changed objects, by the lookup keys that select the objects after the change. */
  readonly #selected = new Map<string, string>();
  /**
   * A new read of the list, as proof that objects do not exist. The read starts after {@link WINDOW}. `keys` are the
   * lookup keys that its callers need.
   */
  #proof: { readonly keys: Set<string>; readonly found: Promise<ReadonlySet<string>> } | undefined;

  constructor(source: Source<T>) {
    this.#source = source;
  }

  /**
   * Returns the object with this lookup key from the cache or the service. Returns undefined if no such object exists.
   */
  async find(key: string): Promise<T | undefined> {
    const item = await this.#read(this.#selected.get(key) ?? key);
    return item === undefined || this.#isRemoved(item) ? undefined : this.#changed(item);
  }

  #read(key: string): Promise<T | undefined> {
    return this.#found.get(key, () => (this.#all ? this.#fromAll(this.#all, key) : this.#gather(key)));
  }

  /** Returns all objects. */
  async all(): Promise<T[]> {
    const all = await this.#listOnce();
    return [...new Set(all.values())].flatMap((item) =>
      item === undefined || this.#isRemoved(item) ? [] : [this.#changed(item)],
    );
  }

  #isRemoved(item: T): boolean {
    return this.#removed.has(`${this.#source.keysOf(item)[0]}`);
  }

  /** Caches an object after a write, so that a later read sends no request. */
  put(item: T): void {
    const keys = this.#source.keysOf(item);
    // Cached reads with earlier lookup keys return this object too.
    this.#changes.set(`${keys[0]}`, item);
    for (const key of keys) {
      this.#selected.delete(key);
      this.#removed.delete(key);
      this.#found.set(key, Promise.resolve(item));
    }
  }

  /**
   * Records the fields of an object that the run changed. Later reads return the new values without a request. If the
   * object was already read with a lookup key that it no longer has, this key still finds the object.
   * @param identity the object's first lookup key
   * @param selecting other lookup keys that select this object after the change, even if they selected a different
   *   object or no object before
   */
  change(identity: string, fields: Partial<T>, selecting: readonly string[] = []): void {
    this.#changes.set(identity, { ...this.#changes.get(identity), ...fields });
    for (const key of selecting) this.#selected.set(key, identity);
  }

  #changed(item: T): T {
    const fields = this.#changes.get(`${this.#source.keysOf(item)[0]}`);
    return fields ? { ...item, ...fields } : item;
  }

  /** Drops all cached reads, so that the next read queries the service. */
  forget(): void {
    this.#found.clear();
    this.#changes.clear();
    this.#selected.clear();
    this.#removed.clear();
    this.#all = undefined;
    this.#started = undefined;
  }

  /**
   * Records the deletion of an object.
   * @param removed the object, or one of its lookup keys
   */
  drop(removed: string | T): void {
    const keys = typeof removed === "string" ? [removed] : this.#source.keysOf(removed);
    for (const key of keys) {
      this.#selected.delete(key);
      this.#found.set(key, Promise.resolve(undefined));
    }
  }

  /**
   * Deletes an object, and waits for proof that the object no longer exists. The proof is the service's own response,
   * or a new list without the object. Concurrent deletions share this list.
   * @param key a lookup key of the object
   * @param send sends the request with the given client
   * @throws ResourceError (`doubtful_answer`) if there is no proof
   */
  async remove(key: string, client: Client, send: (client: Client) => Promise<unknown>): Promise<void> {
    await this.#requireAbsent(key, await doubtOf(client, send));
    this.drop(key);
    this.#removed.add(key);
  }

  /**
   * Returns true if a new list contains the object with this lookup key. The list is read after the call, so it
   * includes the effects of earlier requests. Concurrent calls share the list.
   * @throws ResourceError (`doubtful_answer`) if the list proves nothing
   */
  async isListed(key: string): Promise<boolean> {
    this.#proof ??= this.#startProof();
    this.#proof.keys.add(key);
    return (await this.#proof.found).has(key);
  }

  #startProof() {
    const keys = new Set<string>();
    const read = async () => {
      this.#proof = undefined;
      await this.#source.requireReadable?.();
      const items = await this.#readAnew([...keys]);
      return new Set(items.flatMap((item) => this.#source.keysOf(item)));
    };
    return { keys, found: wait(WINDOW).then(read) };
  }

  /** Reads a list that contains all existing objects with these lookup keys. */
  async #readAnew(keys: readonly string[]): Promise<readonly T[]> {
    const { kind, pages, among, keysOf } = this.#source;
    const first = (item: T) => keysOf(item)[0] ?? "";
    if (among && keys.length <= FEW) {
      const { value } = await pages().next();
      const { items = [], total } = (value ?? {}) as Partial<ListedPage<T>>;
      const other = items.find((item) => !keysOf(item).some((key) => keys.includes(key)));
      if (total !== undefined && total > WHOLE && other !== undefined) {
        // The result must contain an object that is known to exist. Otherwise, the server does not support the filter.
        const some = await completeList(kind, () => among([...keys, first(other)]), first).catch(ifRefused);
        if (some?.some((item) => first(item) === first(other))) return some;
      }
    }
    return completeList(kind, pages, first);
  }

  #requireAbsent(key: string, doubt: Doubt | undefined): Promise<void> {
    return requireAbsent(this.#source.kind, key, doubt, () => this.isListed(key));
  }

  // A failed read is not cached, so the next call reads again.
  #gather(key: string): Promise<T | undefined> {
    // A different caller may already wait for this lookup key. `forget` does not cancel reads that are being collected.
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
    this.#requested += batch.size;
    try {
      const all = (await this.#listIsCheaper()) ? await this.#listOnce() : undefined;
      for (const [key, { resolve }] of batch) resolve(all ? this.#fromAll(all, key) : this.#look(key));
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    }
  }

  async #listIsCheaper(): Promise<boolean> {
    if (this.#all) return true;
    if (this.#requested <= FEW) return false;
    const first = await this.#start().first.catch((error: unknown) => {
      // A credential may be allowed to read an object but not the list. An example is an API key, which can read its
      // namespace but cannot list namespaces.
      if (isUnreadable(error)) return undefined;
      throw error;
    });
    if (!first) return false;
    const { total } = first;
    // All objects are listed if the server does not report the length of its lists, because a request for a single
    // object is not cheaper on this server.
    return total === undefined || Math.ceil(total / PAGE_SIZE) <= this.#requested * EXPECTED;
  }

  #start(): StartedList<T> {
    if (!this.#started) {
      const pages = this.#source.pages();
      const started = { pages, first: pages.next().then(pageOf) };
      this.#started = started;
      started.first.catch(() => {
        if (this.#started === started) this.#started = undefined;
      });
    }
    return this.#started;
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
    const { pages, first } = this.#start();
    this.#started = undefined;
    const { items, total, skipped = 0 } = await first;
    requireLength(this.#source.kind, items.length + skipped === 0, total);
    this.#add(found, items);
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

  async #look(key: string): Promise<T | undefined> {
    try {
      return await this.#source.look(key);
    } catch (error) {
      if (!isMissingObject(error)) throw error;
      if (!isProvenMissing(error)) await this.#requireAbsent(key, doubtAbout(error));
      return undefined;
    }
  }
}

/** Returns undefined for a request that the server rejected. Rethrows any other error. */
function ifRefused(error: unknown): undefined {
  if (error instanceof RequestError && error.status !== undefined) return undefined;
  throw error;
}

interface StartedList<T> {
  readonly pages: AsyncIterator<ListedPage<T>>;
  readonly first: Promise<ListedPage<T>>;
}

const pageOf = <T>({ value, done }: IteratorResult<ListedPage<T>>): ListedPage<T> =>
  done ? { items: [], total: undefined } : value;

/**
 * Returns true for a 404 without a message. The cause of this error is not clear. Some servers return most errors
 * without a message, but the response may also come from a proxy in front of the service.
 */
export const isSilent = ({ serverMessage }: NotFoundError): boolean => serverMessage === undefined;

/** Returns true if a request failed, but may have taken effect. */
export const isUnclear = (error: unknown): boolean =>
  error instanceof RequestError && error.outcome !== "none";

/**
 * Returns true if the credential has no permission to read an object, or if the object does not exist. Some services
 * return 400 instead of 403 if a list requires a user and the credential is an API key.
 */
export const isUnreadable = (error: unknown): error is RequestError =>
  error instanceof PermissionError ||
  error instanceof NotFoundError ||
  (error instanceof RequestError && error.status === 400 && error.operation === "listInvitations");
