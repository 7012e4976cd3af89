import { type Client, ConfigurationError, isNotFound } from "@gatehouse-access/sdk";
import type { Listing } from "./listing.ts";
import {
  type ApiKey,
  apiKeyListing,
  type Device,
  deviceListing,
  type FirewallRule,
  type Namespace,
  namespaceListing,
  type PublicKey,
  publicKeyListing,
  ruleListing,
} from "./listings.ts";
import { type Release, releaseNote, releaseOf } from "./release.ts";

/** A client whose calls act on one namespace, and what the run knows of it. */
export interface TenantClient {
  readonly tenant: string;
  readonly client: Client;
  readonly devices: Listing<Device>;
  readonly keys: Listing<PublicKey>;
  readonly rules: Listing<FirewallRule>;
  readonly apiKeys: Listing<ApiKey>;
  readonly tagWork: TagWork;
}

/** So many namespaces are named where one is to be chosen. */
const LISTED = 20;

/** What a {@link Connection} is made of beside its client. */
export interface ConnectionOptions {
  /** Meant where a resource names no namespace; without it, the credential's is. */
  readonly defaultTenant?: string | undefined;
  /** True when the service accepts this secret of an API key. */
  readonly opens?: (secret: string) => Promise<boolean>;
}

/**
 * What the resources share in one run: one login, one token for each namespace, one listing of each kind.
 * Nothing is requested before a resource needs it.
 */
export class Connection {
  readonly client: Client;
  readonly namespaces: Listing<Namespace>;
  readonly #tenants = new Map<string, Promise<TenantClient>>();
  readonly #options: ConnectionOptions;
  #home: Promise<string> | undefined;
  #release: Promise<Release | undefined> | undefined;
  #releaseTold = false;

  constructor(client: Client, options: ConnectionOptions = {}) {
    this.client = client;
    this.namespaces = namespaceListing(client);
    this.#options = options;
  }

  /** The namespace that a setting names for resources that name none. */
  get defaultTenant(): string | undefined {
    return this.#options.defaultTenant;
  }

  /** True when this secret of an API key works. */
  async opens(secret: string): Promise<boolean> {
    return (await this.#options.opens?.(secret)) ?? false;
  }

  /**
   * The connection to a namespace. Whether there is one, and the credential is for it, its first request tells.
   * @throws AuthenticationError when the service refuses the credential
   * @throws ConfigurationError when no namespace is named, and the credential belongs to none, or to several
   */
  async tenant(tenant: string | undefined): Promise<TenantClient> {
    const name = tenant ?? (await this.home());
    let opened = this.#tenants.get(name);
    if (!opened) {
      opened = this.#open(name);
      this.#tenants.set(name, opened);
      // A failed exchange is not remembered: the namespace may be made later in the same run.
      opened.catch(() => this.#tenants.delete(name));
    }
    return opened;
  }

  /**
   * True when the service answers a repeated creation with what the first one made. It does not say so; but one that
   * gives a namespace a revision is this service, which always did.
   */
  async knowsIdempotencyKeys(tenant: string | undefined): Promise<boolean> {
    const name = tenant ?? this.#options.defaultTenant ?? (await this.client.identity()).tenant;
    if (!name) return false;
    const { headers } = await this.client.forTenant(name).call("getNamespace", { params: { tenant: name } });
    return headers.etag !== undefined;
  }

  /** The release that the service says it is of, asked once; undefined where it does not say. */
  release(): Promise<Release | undefined> {
    this.#release ??= releaseOf(this.client);
    return this.#release;
  }

  /**
   * Does work with the service. When a request of it fails, and the service is of another release than the one that
   * this provider is made for, `tell` hears that, once for the connection. The error is thrown as it is.
   */
  async telling<T>(tell: (line: string) => void, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const note = this.#releaseTold ? undefined : await releaseNote(error, () => this.release());
      // Others may have failed, and told it, meanwhile.
      if (note !== undefined && !this.#releaseTold) {
        this.#releaseTold = true;
        tell(note);
      }
      throw error;
    }
  }

  /** Forgets what was read, where the truth must be looked at again. */
  async forget(): Promise<void> {
    this.namespaces.forget();
    const opened = await Promise.allSettled(this.#tenants.values());
    for (const result of opened) {
      if (result.status === "rejected") continue;
      const { devices, keys, rules, apiKeys } = result.value;
      for (const listing of [devices, keys, rules, apiKeys]) listing.forget();
    }
  }

  /**
   * The namespace of resources that name none: the one that was set, or else the only one that the credential is for. It
   * is the same for all of a run, and does not depend on which one a user looked at last.
   * @throws ConfigurationError when there is none, or more than one, with what to do
   */
  home(): Promise<string> {
    if (this.#options.defaultTenant) return Promise.resolve(this.#options.defaultTenant);
    if (!this.#home) {
      const home = this.#onlyTenant();
      this.#home = home;
      home.catch((error: unknown) => {
        // What could not be asked may be asked again; what was answered stays, whatever the run makes.
        if (!(error instanceof ConfigurationError)) this.#home = undefined;
      });
    }
    return this.#home;
  }

  async #onlyTenant(): Promise<string> {
    const { kind, tenant } = await this.client.identity();
    // Keys and tokens are for one; which one a user's login is for changes with what the user does elsewhere.
    if (kind !== "password" && tenant) return tenant;
    const [first, ...others] = await this.namespaces.all();
    if (!first) {
      throw new ConfigurationError(
        "tenant: the user is in no namespace yet; gatehouse up --create-namespace <name> makes one, or name one in each resource",
      );
    }
    if (others.length === 0) return first.tenantId;
    const list = [first, ...others].map(({ name, tenantId }) => `${name} (${tenantId})`).sort();
    const more = list.length > LISTED ? `, and ${list.length - LISTED} more` : "";
    throw new ConfigurationError(
      `tenant: the user is in ${list.length} namespaces; name one in each resource, or set GATEHOUSE_TENANT or gatehouse:tenant (pulumi config set gatehouse:tenant <id>) to the id of one: ${list.slice(0, LISTED).join(", ")}${more}`,
    );
  }

  async #open(tenant: string): Promise<TenantClient> {
    const client = this.client.forTenant(tenant);
    await client.identity();
    return {
      tenant,
      client,
      devices: deviceListing(client, tenant),
      keys: publicKeyListing(client),
      rules: ruleListing(client, tenant),
      apiKeys: apiKeyListing(client),
      tagWork: new TagWork(client, tenant),
    };
  }
}

/** Milliseconds without any work on tags after which a tag that is missing will not come. */
const QUIET = 5_000;

/**
 * The writes of tags in a namespace, in this run. The service refuses a filter with a tag that nothing carries (rules
 * section 16.4), so that who names a tag may have to wait until another resource has given it to a device.
 */
export class TagWork {
  readonly #client: Client;
  readonly #tenant: string;
  readonly #waiting = new Set<() => void>();
  #running = 0;
  #ended = 0;

  constructor(client: Client, tenant: string) {
    this.#client = client;
    this.#tenant = tenant;
  }

  /** Runs work that gives tags to a device. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#ended += 1;
      for (const wake of this.#waiting) wake();
    }
  }

  /**
   * Sends a request that names tags in a filter, again as often as tags may have come since it was refused.
   * @param input the filter's tags, as errors name them
   * @throws Error naming the tags that nothing carries, when no more work on tags is under way
   */
  async needing<T>(tags: readonly string[] | undefined, input: string, send: () => Promise<T>): Promise<T> {
    let cameMeanwhile = false;
    for (;;) {
      const seen = this.#ended;
      try {
        return await send();
      } catch (error) {
        if (!tags || !isNotFound(error)) throw error;
        const known = await this.#client.getTags();
        const missing = tags.filter((tag) => !known.includes(tag));
        // All are known: they came since it was sent, or it is something else that was not found.
        if (missing.length === 0 && cameMeanwhile) throw error;
        cameMeanwhile = missing.length === 0;
        if (missing.length > 0 && !(await this.#moreThan(seen))) {
          throw new Error(
            `${input}: nothing in the namespace ${this.#tenant} carries the tag ${missing.join(", ")}; give it to a device first, or check its spelling`,
            { cause: error },
          );
        }
      }
    }
  }

  /** True when more writes have ended than `seen`; false when none runs and none ends for a while. */
  async #moreThan(seen: number): Promise<boolean> {
    while (this.#ended === seen) {
      await this.#endOrPause();
      if (this.#running === 0) break;
    }
    return this.#ended > seen;
  }

  #endOrPause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, QUIET);
    this.#waiting.add(resolve);
    return promise.finally(() => {
      clearTimeout(timer);
      this.#waiting.delete(resolve);
    });
  }
}
