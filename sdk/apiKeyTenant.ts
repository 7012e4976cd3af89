import { NotFoundError, PermissionError } from "./errors.ts";
import type { OperationId, RequestOf, ResponseOf } from "./operations.ts";

/** Calls an operation with the API key. */
export type KeyCaller = <Id extends OperationId>(id: Id, request: RequestOf<Id>) => Promise<ResponseOf<Id>>;

/**
 * Finds out which namespace an API key belongs to: an API key does not say so itself. Each question is asked
 * once.
 */
export class ApiKeyTenant {
  #own: Promise<string | undefined> | undefined;
  #known: string | undefined;
  /** The server does not let a key list namespaces, as newer ones. */
  #listRefused = false;
  readonly #checked = new Map<string, Promise<boolean>>();

  /** The key's namespace as far as it is known without a request. */
  get known(): string | undefined {
    return this.#known;
  }

  /** The key's namespace; undefined when the server does not let the key see it. */
  own(call: KeyCaller): Promise<string | undefined> {
    this.#own ??= this.#findOwn(call).catch((error) => {
      this.#own = undefined;
      throw error;
    });
    return this.#own;
  }

  /**
   * Makes sure that `tenant` is the key's namespace.
   * @throws PermissionError when it is another, or can not be told: a change in the wrong namespace is worse.
   */
  async require(tenant: string, call: KeyCaller): Promise<void> {
    const own = await this.own(call);
    const same = own === undefined ? this.#listRefused && (await this.#isOwn(tenant, call)) : own === tenant;
    if (!same) {
      throw new PermissionError(
        own === undefined
          ? `namespace ${tenant} is not known to be the one of the API key; leave it out, or use a user's credential`
          : `the API key belongs to namespace ${own}, not to ${tenant}; use a key of that namespace, or a user's credential`,
        {
          operation: "forTenant",
          method: "GET",
          path: "/api/namespaces",
          outcome: "none",
          attempts: 0,
        },
      );
    }
  }

  async #findOwn(call: KeyCaller): Promise<string | undefined> {
    try {
      const namespaces = await call("getNamespaces", { query: { perPage: 2 } });
      // Servers of 0.19 list every namespace of the instance to a key (rules D37): that tells nothing.
      this.#known = namespaces.length === 1 ? namespaces[0]?.tenantId : undefined;
    } catch (error) {
      if (!(error instanceof PermissionError)) {
        throw error;
      }
      this.#listRefused = true;
    }
    this.#known ??= await this.#fromContent(call);
    return this.#known;
  }

  /** Every key and device names its namespace, and lists hold those of the credential's namespace only. */
  async #fromContent(call: KeyCaller): Promise<string | undefined> {
    const [key] = await call("getPublicKeys", { query: { perPage: 1 } });
    if (key) {
      return key.tenantId;
    }
    const [device] = await call("getDevices", { query: { perPage: 1 } });
    return device?.tenantId;
  }

  #isOwn(tenant: string, call: KeyCaller): Promise<boolean> {
    let answer = this.#checked.get(tenant);
    if (!answer) {
      answer = this.#seesMembers(tenant, call).catch((error) => {
        this.#checked.delete(tenant);
        throw error;
      });
      this.#checked.set(tenant, answer);
    }
    return answer;
  }

  /** Where a key can not list namespaces, it sees the members of its own namespace only. */
  async #seesMembers(tenant: string, call: KeyCaller): Promise<boolean> {
    try {
      const namespace = await call("getNamespace", { params: { tenant } });
      return namespace.members.length > 0;
    } catch (error) {
      if (error instanceof PermissionError || error instanceof NotFoundError) {
        return false;
      }
      throw error;
    }
  }
}
