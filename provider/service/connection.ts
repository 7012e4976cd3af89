import { type Client, ConfigurationError, type Declaration, isNotFound } from "@gatehouse-access/sdk";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import { type Invitation, invitationListing } from "./invitations.ts";
import type { Listing } from "./listings.ts";
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

/** True where two addresses are of one service. */
export function isSameService(left: string, right: string): boolean {
  const normal = (url: string) => (URL.canParse(url) ? new URL(url).href.replace(/\/$/, "") : url);
  return normal(left) === normal(right);
}

/** One namespace, as all resources of a run see it. */
export interface TenantClient {
  /** Id of the namespace. */
  readonly tenant: string;
  /** A client whose calls are for this namespace. */
  readonly client: Client;
  readonly devices: Listing<Device>;
  readonly keys: Listing<PublicKey>;
  readonly rules: Listing<FirewallRule>;
  readonly apiKeys: Listing<ApiKey>;
  /** Those of services that keep them apart from members. */
  readonly invitations: Listing<Invitation>;
  readonly tagWork: TagWork;
}

/** Most namespaces that an error lists. */
const LISTED = 20;

/** The namespace of resources that name none. */
export interface Home {
  /** Its id; undefined where there is no such namespace. */
  readonly tenant: string | undefined;
  /** Why there is none. */
  readonly unsettled: Error | undefined;
}

/** What a {@link Connection} needs beside its client. */
export interface ConnectionOptions {
  /**
   * The namespace of resources that name none.
   * @default the only one that the credential is for
   */
  readonly defaultTenant?: string | undefined;
  /**
   * True when the service takes this secret as an API key.
   * @default always false
   */
  readonly opens?: (secret: string) => Promise<boolean>;
}

/** What all views of a connection have in common. */
interface Shared {
  readonly namespaces: Listing<Namespace>;
  readonly tenants: Map<string, Promise<TenantClient>>;
  readonly options: ConnectionOptions;
  home: Promise<string> | undefined;
  release: Promise<Release | undefined> | undefined;
  releaseTold: boolean;
}

/**
 * The service, as all resources of a run see it: they share one login, one token for each namespace and one listing of
 * each kind of object. Nothing is requested before a resource needs it.
 */
export class Connection {
  readonly client: Client;
  readonly #shared: Shared;

  /** @param shared of the connection that this is a view of; by default it is one of its own */
  constructor(client: Client, options: ConnectionOptions = {}, shared?: Shared) {
    this.client = client;
    this.#shared = shared ?? {
      namespaces: namespaceListing(client),
      tenants: new Map(),
      options,
      home: undefined,
      release: undefined,
      releaseTold: false,
    };
  }

  /** Those that the credential's user is a member of. */
  get namespaces(): Listing<Namespace> {
    return this.#shared.namespaces;
  }

  /** The same connection, whose writes say which resource of a program they are of: a hint for people. */
  declaring(declaration: Declaration): Connection {
    return new Connection(this.client.declaring(declaration), this.#shared.options, this.#shared);
  }

  /** The same service, of which nothing was read yet: for what must see what this run has changed. */
  fresh(): Connection {
    return new Connection(this.client, this.#shared.options);
  }

  /** The namespace of resources that name none, where a setting says which. */
  get defaultTenant(): string | undefined {
    return this.#shared.options.defaultTenant;
  }

  /** True when the service takes this secret as an API key. */
  async opens(secret: string): Promise<boolean> {
    return (await this.#shared.options.opens?.(secret)) ?? false;
  }

  /**
   * A namespace. It may not exist, or not be the credential's: that shows when something is requested of it.
   * @param tenant its id; undefined for that of resources that name none, as {@link home}
   * @throws AuthenticationError when the service refuses the credential
   * @throws ConfigurationError when no namespace is named, and the credential is for none, or for several
   */
  async tenant(tenant: string | undefined): Promise<TenantClient> {
    const name = tenant ?? (await this.home());
    let opened = this.#shared.tenants.get(name);
    if (!opened) {
      opened = this.#open(name);
      this.#shared.tenants.set(name, opened);
      // A failure is forgotten: the namespace may be made later in the same run.
      opened.catch(() => this.#shared.tenants.delete(name));
    }
    return { ...(await opened), client: this.client.forTenant(name) };
  }

  /**
   * True when the service answers a repeated creation with what the first one made. It does not say so itself; but a
   * service that gives namespaces a revision does.
   */
  async knowsIdempotencyKeys(tenant: string | undefined): Promise<boolean> {
    const name = tenant ?? this.#shared.options.defaultTenant ?? (await this.client.identity()).tenant;
    if (!name) return false;
    const { headers } = await this.client.forTenant(name).call("getNamespace", { params: { tenant: name } });
    return headers.etag !== undefined;
  }

  /** The release that the service says it is of, asked once; undefined where it does not say. */
  release(): Promise<Release | undefined> {
    this.#shared.release ??= releaseOf(this.client);
    return this.#shared.release;
  }

  /**
   * Does work with the service. When a request of it fails, and the service is of another release than the one that
   * this provider is made for, `tell` hears that, once for the connection. The error is thrown as it is.
   */
  async telling<T>(tell: (line: string) => void, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const note = this.#shared.releaseTold ? undefined : await releaseNote(error, () => this.release());
      // Others may have failed, and told it, meanwhile.
      if (note !== undefined && !this.#shared.releaseTold) {
        this.#shared.releaseTold = true;
        tell(note);
      }
      throw error;
    }
  }

  /** Forgets all that was read, so that the next read asks the service. */
  async forget(): Promise<void> {
    this.namespaces.forget();
    const opened = await Promise.allSettled(this.#shared.tenants.values());
    for (const result of opened) {
      if (result.status === "rejected") continue;
      const { devices, keys, rules, apiKeys, invitations } = result.value;
      for (const listing of [devices, keys, rules, apiKeys, invitations]) listing.forget();
    }
  }

  /**
   * The namespace of resources that name none: the one that a setting names, or else the only one that the credential
   * is for. It stays the same for all of a run, and does not depend on which namespace the user looked at last.
   * @throws ConfigurationError when there is none, or more than one, with what to do
   */
  home(): Promise<string> {
    if (this.#shared.options.defaultTenant) return Promise.resolve(this.#shared.options.defaultTenant);
    if (!this.#shared.home) {
      const home = this.#onlyTenant();
      this.#shared.home = home;
      home.catch((error: unknown) => {
        // A failed request may be repeated. An answer stays, whatever namespaces the run makes.
        if (!(error instanceof ConfigurationError)) this.#shared.home = undefined;
      });
    }
    return this.#shared.home;
  }

  /** The namespace of resources that name none, or why there is none: a run in which each resource names one needs none. */
  async homeIfAny(): Promise<Home> {
    try {
      return { tenant: await this.home(), unsettled: undefined };
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      return { tenant: undefined, unsettled: error };
    }
  }

  async #onlyTenant(): Promise<string> {
    const { kind, tenant } = await this.client.identity();
    // Keys and tokens are for one namespace. That of a login changes with what the user does elsewhere.
    if (kind !== "password" && tenant) return tenant;
    const [first, ...others] = await this.namespaces.all();
    if (!first) {
      throw new ConfigurationError("the user is in no namespace yet", {
        field: ["tenant"],
        remedy:
          "gatehouse up --create-namespace <name> makes one, or name one in each resource of the program",
      });
    }
    if (others.length === 0) return first.tenantId;
    const list = [first, ...others].map(({ name, tenantId }) => `${name} (${tenantId})`).sort();
    const more = list.length > LISTED ? `, and ${list.length - LISTED} more` : "";
    throw new ConfigurationError(`the user is in ${list.length} namespaces`, {
      field: ["tenant"],
      remedy: `set GATEHOUSE_TENANT or gatehouse:tenant (pulumi config set gatehouse:tenant <id>) to the id of one, or name one in each resource of the program: ${list.slice(0, LISTED).join(", ")}${more}`,
    });
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
      invitations: invitationListing(client, tenant),
      tagWork: new TagWork(client, tenant),
    };
  }
}

/** Milliseconds without any work on tags after which nobody waits for a missing tag any more. */
const QUIET = 5_000;

/**
 * The writes of tags in one namespace during a run. The service refuses a filter with a tag that nothing carries (rules
 * section 16.4), so a key or rule may have to wait until another resource has given the tag to a device.
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
   * Sends a request with tags in a filter. While work on tags goes on it is repeated for as long as the service refuses
   * it because of a tag.
   * @param resource name of the definition, for errors
   * @throws Error naming the tags that nothing carries, once no work on tags goes on any more
   */
  async needing<T>(
    tags: readonly string[] | undefined,
    resource: string,
    send: () => Promise<T>,
  ): Promise<T> {
    let cameMeanwhile = false;
    for (;;) {
      const seen = this.#ended;
      try {
        return await send();
      } catch (error) {
        if (!tags || !isNotFound(error)) throw error;
        const known = await this.#client.getTags();
        const missing = tags.filter((tag) => !known.includes(tag));
        // All are there: they came meanwhile, or something else was not found.
        if (missing.length === 0 && cameMeanwhile) throw error;
        cameMeanwhile = missing.length === 0;
        if (missing.length > 0 && !(await this.#moreThan(seen))) {
          const fault: ResourceFault = {
            code: "not_carried_tag",
            field: ["filter", "tags"],
            detail: said`nothing in the namespace ${this.#tenant} carries the tag ${missing.join(", ")}`,
            remedy: said`give it to a device first (a ${{ phrase: "ofTheProgram" }} that does so goes into ${{ phrase: "dependsOn" }}), or check its spelling`,
          };
          throw new ResourceError(resource, fault, { cause: error });
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
