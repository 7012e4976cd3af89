import { type Client, where } from "@gatehouse-access/sdk";

/** A public key as the service shows it. */
export type ListedKey = Awaited<ReturnType<Client["getPublicKeys"]>>[number];

const PAGE = 100;

/**
 * Public keys of a namespace, read in pages and shared by all resources of a run: the service has no request
 * for a single key, and thousands of single looks would be as many lists.
 */
export class KeyListing {
  readonly #client: Client;
  #all: Promise<Map<string, ListedKey>> | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Call after each write: what was listed before it is no longer true. */
  forget(): void {
    this.#all = undefined;
  }

  /** The key with this fingerprint; absence in the listing is believed only after a second look. */
  async find(fingerprint: string): Promise<ListedKey | undefined> {
    const listed = (await this.#listed()).get(fingerprint);
    return listed ?? (await this.#look(fingerprint));
  }

  #listed(): Promise<Map<string, ListedKey>> {
    if (!this.#all) {
      const all = this.#list();
      this.#all = all;
      // A failed listing is not kept: the next read tries again.
      all.catch(() => {
        if (this.#all === all) this.#all = undefined;
      });
    }
    return this.#all;
  }

  async #list(): Promise<Map<string, ListedKey>> {
    const keys = new Map<string, ListedKey>();
    for await (const key of this.#client.iterate("getPublicKeys", { query: { perPage: PAGE } })) {
      keys.set(key.fingerprint, key);
    }
    return keys;
  }

  // Servers that ignore the filter answer with every key, so the answer is searched to its end.
  async #look(fingerprint: string): Promise<ListedKey | undefined> {
    const query = { filter: where("fingerprint").eq(fingerprint), perPage: PAGE };
    for await (const key of this.#client.iterate("getPublicKeys", { query })) {
      if (key.fingerprint === fingerprint) return key;
    }
    return undefined;
  }
}
