import { type Client, isNotFound } from "@gatehouse-access/sdk";
import { KeyListing } from "./keyListing.ts";

/** A client whose calls act on one namespace. */
export interface TenantClient {
  readonly tenant: string;
  readonly client: Client;
  readonly keys: KeyListing;
}

/**
 * What the resources share in one run: one login, one token for each namespace, one listing of each kind.
 * Nothing is requested before a resource needs it.
 */
export class Connection {
  readonly client: Client;
  readonly #tenants = new Map<string, Promise<TenantClient>>();
  readonly #defaultTenant: string | undefined;

  /** `defaultTenant` is meant where a resource names none; without it, the credential's namespace is. */
  constructor(client: Client, defaultTenant?: string) {
    this.client = client;
    this.#defaultTenant = defaultTenant;
  }

  /**
   * The connection to a namespace.
   * @throws NotFoundError when the namespace does not exist (any more)
   * @throws PermissionError when it exists and the credential is not for it
   */
  async tenant(tenant: string | undefined): Promise<TenantClient> {
    const name = tenant ?? this.#defaultTenant ?? (await this.#ownTenant());
    let opened = this.#tenants.get(name);
    if (!opened) {
      opened = this.#open(name);
      this.#tenants.set(name, opened);
      // A failed exchange is not remembered: the namespace may be made later in the same run.
      opened.catch(() => this.#tenants.delete(name));
    }
    return opened;
  }

  async #ownTenant(): Promise<string> {
    const { tenant } = await this.client.identity();
    if (!tenant) {
      throw new Error(
        "tenant: the credential belongs to no namespace; name one in each resource, or set GATEHOUSE_TENANT",
      );
    }
    return tenant;
  }

  async #open(tenant: string): Promise<TenantClient> {
    const client = this.client.forTenant(tenant);
    try {
      await client.identity();
    } catch (error) {
      // A token is refused alike when the namespace is gone and when the user was removed from it. Only the
      // first may count as deleted: the second would empty the state.
      if (isNotFound(error)) await this.client.getNamespace({ params: { tenant } });
      throw error;
    }
    return { tenant, client, keys: new KeyListing(client) };
  }
}
