import { type Client, ConfigurationError, type Declaration, isNotFound } from "@gatehouse-access/sdk";
import { PromiseCache } from "@gatehouse-access/sdk/promises";
import { UNKNOWN } from "../engineMarks.ts";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import { isUnreadable, Listing, type ListingSource, type Namespace, namespaceListing } from "./listings.ts";
import { comesFromServer, newerVersionNote, type Server, serverOf } from "./server.ts";

/** Returns true if two addresses refer to the same service. */
export function isSameService(left: string, right: string): boolean {
  const normal = (url: string) => (URL.canParse(url) ? new URL(url).href.replace(/\/$/, "") : url);
  return normal(left) === normal(right);
}

/** A client for one namespace, with the cached data that all resources of a run share. */
export interface TenantClient {
  /** The id of the namespace. */
  readonly tenant: string;
  /** A client for requests to this namespace. */
  readonly client: Client;
  /** Returns the listing of a source. All resources of a run share this listing. */
  readonly listing: <T>(source: ListingSource<T>) => Listing<T>;
  /** Drops the cached reads of all listings. */
  readonly forget: () => void;
  readonly tagWork: TagWork;
}

/** The maximum number of namespaces that an error lists. */
const LISTED = 20;

/** The default namespace: the namespace of resources that do not set `tenant`. */
export interface Home {
  /** The id of the namespace. Undefined if there is no default namespace. */
  readonly tenant: string | undefined;
  /** The error that explains why there is no default namespace. Undefined if there is one. */
  readonly unsettled: Error | undefined;
}

/** The front end that uses a connection. The remedies in errors contain the settings of this front end. */
export type FrontEnd = "pulumi" | "terraform";

/** The options of a {@link Connection}. */
interface ConnectionOptions {
  /** @default "pulumi" */
  readonly frontEnd?: FrontEnd;
  /**
   * The id of the default namespace.
   * @default the only namespace of the credential
   */
  readonly defaultTenant?: string | undefined;
  /**
   * Returns true if the service accepts this secret as an API key.
   * @default always false
   */
  readonly opens?: (secret: string) => Promise<boolean>;
  /** True to reject expiry times and owners that the server does not enforce. @default false */
  readonly requiresEnforcedExpiry?: boolean;
  /** True to delete objects even if another stack was the last to declare them. @default false */
  readonly deletesClaimed?: boolean;
}

/** The remedy if the user is not a member of any namespace. */
const CREATE_NAMESPACE: Readonly<Record<FrontEnd, string>> = {
  pulumi:
    "create a namespace with gatehouse up --create-namespace <name>, or set tenant in each resource of the program",
  terraform:
    "declare a gatehouse_namespace, and set tenant in each other resource to the tenant of that namespace",
};

/** The remedy if the user is a member of several namespaces. */
const SELECT_NAMESPACE: Readonly<Record<FrontEnd, string>> = {
  pulumi:
    "set GATEHOUSE_TENANT or gatehouse:tenant (pulumi config set gatehouse:tenant <id>) to the id of a namespace, or set tenant in each resource of the program",
  terraform:
    "set the provider's argument tenant or GATEHOUSE_TENANT to the id of a namespace, or set tenant in each resource",
};

/** The remedy if the namespace of an API key cannot be determined. */
const SET_NAMESPACE: Readonly<Record<FrontEnd, string>> = {
  pulumi:
    "set GATEHOUSE_TENANT or gatehouse:tenant (pulumi config set gatehouse:tenant <id>) to the id of the namespace",
  terraform: "set the provider's argument tenant or GATEHOUSE_TENANT to the id of the namespace",
};

/**
 * The data that a connection shares with its views, such as cached reads. A view is a connection whose writes differ,
 * for example in the declaration that they contain. See {@link Connection.declaring}.
 */
interface Shared {
  readonly namespaces: Listing<Namespace>;
  readonly tenants: PromiseCache<string, TenantClient>;
  readonly options: ConnectionOptions;
  home: Promise<string> | undefined;
  /** The facts about the server, by namespace. */
  readonly servers: PromiseCache<string | undefined, Server>;
  isVersionReported: boolean;
}

/**
 * A connection to the service that all resources of a run share. The resources share one login, one token for each
 * namespace, and one listing for each kind of object. The connection sends no request until a resource needs the
 * service.
 */
export class Connection {
  readonly client: Client;
  readonly #shared: Shared;

  /** @param shared the data of the connection of which this connection is a view; default: new data */
  constructor(client: Client, options: ConnectionOptions = {}, shared?: Shared) {
    this.client = client;
    this.#shared = shared ?? {
      namespaces: namespaceListing(client),
      tenants: new PromiseCache(),
      options,
      home: undefined,
      servers: new PromiseCache(),
      isVersionReported: false,
    };
  }

  /** The namespaces of the credential's user. */
  get namespaces(): Listing<Namespace> {
    return this.#shared.namespaces;
  }

  /**
   * Returns a view of this connection whose writes contain the declaration of a resource. The service stores the
   * declaration only as information for users.
   */
  declaring(declaration: Declaration): Connection {
    return new Connection(this.client.declaring(declaration), this.#shared.options, this.#shared);
  }

  /** Returns a view of this connection that calls `check` before its first write. */
  checkingFirstWrite(check: Parameters<Client["checkingFirstWrite"]>[0]): Connection {
    return new Connection(this.client.checkingFirstWrite(check), this.#shared.options, this.#shared);
  }

  /** Returns a view of this connection whose writes request that the service reject lockouts. */
  guarding(): Connection {
    return new Connection(this.client.guarding(), this.#shared.options, this.#shared);
  }

  /** Returns a connection to the same service without cached reads. So its reads include the changes of this run. */
  fresh(): Connection {
    return new Connection(this.client, this.#shared.options);
  }

  /** The id of the default namespace. Undefined if no setting defines it. */
  get defaultTenant(): string | undefined {
    return this.#shared.options.defaultTenant;
  }

  /** True to reject expiry times and owners that the server does not enforce. */
  get requiresEnforcedExpiry(): boolean {
    return this.#shared.options.requiresEnforcedExpiry ?? false;
  }

  /** True to delete objects even if another stack was the last to declare them. */
  get deletesClaimed(): boolean {
    return this.#shared.options.deletesClaimed ?? false;
  }

  /** Returns true if the service accepts this secret as an API key. */
  async opens(secret: string): Promise<boolean> {
    return (await this.#shared.options.opens?.(secret)) ?? false;
  }

  /**
   * Opens a namespace. The namespace itself is not checked: if it does not exist, or the user is not a member of it,
   * the first request to the namespace fails.
   * @param tenant the id; defaults to {@link home}
   * @throws AuthenticationError if the service rejects the credential
   * @throws ConfigurationError if `tenant` is undefined, and the credential belongs to no namespace or to several
   *   namespaces
   */
  async tenant(tenant: string | undefined): Promise<TenantClient> {
    const name = tenant ?? (await this.home());
    // A failure is not cached, because the run may create the namespace later.
    const opened = await this.#shared.tenants.get(name, () => this.#open(name));
    return { ...opened, client: this.client.forTenant(name) };
  }

  /**
   * Returns true if the service supports idempotency keys. If a create is repeated, such a service returns the object
   * of the first create.
   */
  async knowsIdempotencyKeys(tenant: string | undefined): Promise<boolean> {
    const name = tenant ?? this.#shared.options.defaultTenant ?? (await this.client.identity()).tenant;
    return name !== undefined && ((await this.server(name)).isOwn ?? false);
  }

  /**
   * Returns the version, the dialect and the edition of the server. These facts are requested only once.
   * @param tenant the namespace whose lists show the edition; default: the default namespace, if the credential has one
   * @throws RequestError if the server cannot be reached
   */
  async server(tenant?: string): Promise<Server> {
    const name = tenant ?? (await this.homeIfAny()).tenant;
    const client = name === undefined ? this.client : this.client.forTenant(name);
    return this.#shared.servers.get(name, () => serverOf(client, name));
  }

  /**
   * Returns a function that handles the error of a failed read of firewall rules. For a 404 of the Community edition,
   * which has no firewall, the function returns no rules. Otherwise, it rethrows the error, because a 404 may come from
   * a proxy in front of the service.
   */
  withoutFirewall(tenant: string): (error: unknown) => Promise<never[]> {
    return async (error) => {
      if (isNotFound(error) && (await this.server(tenant)).edition === "community") return [];
      throw error;
    };
  }

  /**
   * Runs `work`, which sends requests to the service. If a request fails and the version of the server is newer than
   * the tested versions, calls `tell` with a note about the version. Each connection reports the note at most once. The
   * error is rethrown unchanged.
   */
  async telling<T>(tell: (line: string) => void, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (comesFromServer(error)) await this.#reportVersion(tell);
      throw error;
    }
  }

  async #reportVersion(tell: (line: string) => void): Promise<void> {
    if (this.#shared.isVersionReported) return;
    // The request for the version may fail for the same reason as the work. The error of the work is more useful, so
    // this error is ignored.
    const version = await this.client.serverVersion().catch(() => undefined);
    const note = version && newerVersionNote(version);
    // Other work that failed at the same time may already have reported the version.
    if (note === undefined || this.#shared.isVersionReported) return;
    this.#shared.isVersionReported = true;
    tell(note);
  }

  /** Drops all cached reads, so that the next read queries the service. */
  async forget(): Promise<void> {
    this.namespaces.forget();
    const opened = await Promise.allSettled(this.#shared.tenants.values());
    for (const result of opened) {
      if (result.status === "rejected") continue;
      result.value.forget();
    }
  }

  /**
   * Returns the id of the default namespace: the namespace in a setting, or the only namespace of the credential. The
   * result stays the same during a run, and does not depend on the namespace that the user selected last.
   * @throws ConfigurationError with a remedy if the credential has no namespace or several namespaces, or if the
   *   namespace does not exist yet
   */
  home(): Promise<string> {
    const { defaultTenant } = this.#shared.options;
    if (defaultTenant === UNKNOWN) {
      // The preview of `gatehouse up --create-namespace` does not create the namespace.
      const detail = "The default namespace does not exist yet: this run creates it after the confirmation";
      const remedy =
        "create the namespace first, or add --yes, because the program reads the namespace in its preview";
      return Promise.reject(new ConfigurationError(detail, { field: ["tenant"], remedy }));
    }
    if (defaultTenant) return Promise.resolve(defaultTenant);
    if (!this.#shared.home) {
      const home = this.#onlyTenant();
      this.#shared.home = home;
      home.catch((error: unknown) => {
        // If a request fails, the next call sends it again. A result from the service stays cached, even if the run
        // creates namespaces later.
        if (!(error instanceof ConfigurationError)) this.#shared.home = undefined;
      });
    }
    return this.#shared.home;
  }

  /**
   * Returns the default namespace, or the error that explains why there is no default namespace. A run does not need a
   * default namespace if all of its resources set `tenant`.
   */
  async homeIfAny(): Promise<Home> {
    try {
      return { tenant: await this.home(), unsettled: undefined };
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      return { tenant: undefined, unsettled: error };
    }
  }

  async #onlyTenant(): Promise<string> {
    const { frontEnd = "pulumi" } = this.#shared.options;
    const { kind, tenant } = await this.client.identity();
    // API keys and tokens belong to one namespace. The namespace of a login with a password is not used, because it
    // changes when the user selects a different namespace.
    if (kind !== "password" && tenant) return tenant;
    const [first, ...others] = await this.namespaces.all().catch((error: unknown) => {
      if (kind === "password" || !isUnreadable(error)) throw error;
      throw new ConfigurationError("The server does not return the namespace of the credential", {
        field: ["tenant"],
        remedy: SET_NAMESPACE[frontEnd],
        cause: error,
      });
    });
    if (!first) {
      throw new ConfigurationError("The user is not a member of any namespace", {
        field: ["tenant"],
        remedy: CREATE_NAMESPACE[frontEnd],
      });
    }
    if (others.length === 0) return first.tenantId;
    const list = [first, ...others].map(({ name, tenantId }) => `${name} (${tenantId})`).sort();
    const more = list.length > LISTED ? `, and ${list.length - LISTED} more` : "";
    throw new ConfigurationError(`The user is a member of ${list.length} namespaces`, {
      field: ["tenant"],
      remedy: `${SELECT_NAMESPACE[frontEnd]}: ${list.slice(0, LISTED).join(", ")}${more}`,
    });
  }

  async #open(tenant: string): Promise<TenantClient> {
    const client = this.client.forTenant(tenant);
    await client.identity();
    const listings = new Map<unknown, Listing<unknown>>();
    return {
      tenant,
      client,
      listing: <T>(source: ListingSource<T>) => {
        const known = listings.get(source) as Listing<T> | undefined;
        const listing = known ?? new Listing(source(client, tenant));
        listings.set(source, listing as Listing<unknown>);
        return listing;
      },
      forget() {
        for (const listing of listings.values()) listing.forget();
      },
      tagWork: new TagWork(client, tenant),
    };
  }
}

/** The time to wait for a missing tag while no write of tags is running, in milliseconds. */
const QUIET = 5_000;

/**
 * The writes of tags in one namespace during a run. The service rejects a filter with an unused tag (rules section
 * 16.4). So the create or update of a key or rule may have to wait until another resource adds the tag to a device. A
 * rename changes the tag in other objects too, although their states still contain the old name.
 */
class TagWork {
  readonly #client: Client;
  readonly #tenant: string;
  readonly #waiting = new Set<() => void>();
  readonly #renames: { readonly from: string; readonly to: string }[] = [];
  #running = 0;
  #ended = 0;

  constructor(client: Client, tenant: string) {
    this.#client = client;
    this.#tenant = tenant;
  }

  /** Runs work that renames a tag. */
  renaming<T>(from: string, to: string, work: () => Promise<T>): Promise<T> {
    // Other resources may read objects with the new name before the response to the rename arrives.
    this.#renames.push({ from, to });
    return this.during(work);
  }

  /** Returns the name of a tag after the renames of this run. */
  newName(tag: string): string {
    return this.#renames.reduce((name, { from, to }) => (name === from ? to : name), tag);
  }

  /** Runs work that may create a missing tag. */
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
   * Sends a request whose filter contains tags. If the service rejects the request because a tag is missing, sends the
   * request again after other writes of tags end.
   * @param resource the name of the resource type, for errors
   * @throws Error with the missing tags if no write of tags is running
   */
  async needing<T>(
    tags: readonly string[] | undefined,
    resource: string,
    send: () => Promise<T>,
  ): Promise<T> {
    let appeared = false;
    for (;;) {
      const seen = this.#ended;
      try {
        return await send();
      } catch (error) {
        if (!tags || !isNotFound(error)) throw error;
        const known = await this.#client.getTags();
        const missing = tags.filter((tag) => !known.includes(tag));
        // If all tags exist now, there are two possible causes. Another resource may have added the tags after the
        // request, or the request refers to a different object that does not exist. The request is sent again once to
        // distinguish these causes.
        if (missing.length === 0 && appeared) throw error;
        appeared = missing.length === 0;
        if (missing.length > 0 && !(await this.#hasEndedSince(seen))) {
          const fault: ResourceFault = {
            code: "unused_tag",
            field: ["filter", "tags"],
            detail: said`No object in the namespace ${this.#tenant} has the tag ${missing.join(", ")}`,
            remedy: said`add the tag to a device first, or check its spelling; if a ${{ phrase: "ofTheProgram" }} adds the tag, list that resource in ${{ phrase: "dependsOn" }}`,
          };
          throw new ResourceError(resource, fault, { cause: error });
        }
      }
    }
  }

  /**
   * Waits until more than `seen` writes of tags have ended, and returns true. Returns false if no write is running and
   * no write ends within {@link QUIET}.
   */
  async #hasEndedSince(seen: number): Promise<boolean> {
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
