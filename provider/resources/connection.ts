import { type Client, ConfigurationError } from "@gatehouse-access/sdk";
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
import { type Release, releaseOf } from "./serviceVersion.ts";
import { TagWork } from "./tagWork.ts";

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

  /** What the service says that it is, asked once; undefined where it does not say. */
  release(): Promise<Release | undefined> {
    this.#release ??= releaseOf(this.client);
    return this.#release;
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
      tagWork: new TagWork(),
    };
  }
}
