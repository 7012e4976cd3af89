import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { LRUCache } from "lru-cache";
import { BusyError } from "../../errors.ts";
import { DocumentError, type ReadDocument } from "./issuerDocuments.ts";

const SECOND = 1000;
/** Time for which the keys of an issuer are used before they are read again. */
const LIFE = 600 * SECOND;
/** Minimum time between two reads, when a token has a key that the issuer did not have at the last read. */
const UNKNOWN_KEY_INTERVAL = 30 * SECOND;
/** Minimum time between two reads, when the last read failed. */
const FAILURE_INTERVAL = 10 * SECOND;

const DISCOVERY_BYTES = 64 * 1024;
const KEYS_BYTES = 128 * 1024;
/** Maximum number of issuers with cached keys. */
const ISSUERS = 250;
/** Maximum number of keys of an issuer. Larger sets would fill the cache. */
const KEYS = 100;

/** Maximum number of issuers that are read at the same time, for all namespaces and for one namespace. */
const READS = 32;
const READS_PER_NAMESPACE = 4;

/** The state of an issuer after its last read. */
interface Issuer {
  readonly triedAt: number;
  readonly failed: boolean;
  /** The keys of the last successful read; undefined if no read was successful. */
  readonly known: { readonly find: JWTVerifyGetKey; readonly readAt: number } | undefined;
}

/** Returns the error for keys that cannot be read. The response has no cause, because a cause describes networks. */
const unavailable = (milliseconds: number) =>
  new BusyError(
    "the keys of the token's issuer cannot be read. Check that the service can reach the issuer, or try again later",
    { "Retry-After": String(Math.ceil(milliseconds / SECOND)) },
  );

/**
 * The public keys of OpenID Connect providers (OpenID Connect Discovery 1.0). Tenants declare the issuers, so the class
 * limits the reads of each issuer, of each namespace, and of all namespaces.
 */
export class IssuerKeys {
  readonly #read: ReadDocument;
  readonly #now: () => Date;
  readonly #onFailure: (issuer: string, error: unknown) => void;
  readonly #issuers = new LRUCache<string, Issuer>({ max: ISSUERS });
  readonly #reads = new Map<string, { readonly tenant: string; readonly end: Promise<Issuer> }>();

  /**
   * @param read reads a document of an issuer
   * @param onFailure receives the reason why the keys of an issuer cannot be read
   */
  constructor(read: ReadDocument, now: () => Date, onFailure: (issuer: string, error: unknown) => void) {
    this.#read = read;
    this.#now = now;
    this.#onFailure = onFailure;
  }

  /**
   * Returns a function that finds the key of a token. A token with an unknown key causes a new read, because the issuer
   * may have a new key.
   * @param issuer an issuer that a trusted workload of the namespace declares
   * @throws BusyError (the returned function) the keys cannot be read
   */
  finder(issuer: string, tenant: string): JWTVerifyGetKey {
    return async (header, token) => {
      const find = await this.#keys(issuer, tenant, false);
      try {
        return await find(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      }
      const findAgain = await this.#keys(issuer, tenant, true);
      return findAgain(header, token);
    };
  }

  /**
   * Returns the keys of an issuer, and reads them if necessary.
   * @param isKeyUnknown true if the cached keys do not include the key of the token
   */
  async #keys(issuer: string, tenant: string, isKeyUnknown: boolean): Promise<JWTVerifyGetKey> {
    const time = this.#now().getTime();
    const last = this.#issuers.get(issuer);
    if (last?.known !== undefined && time - last.known.readAt < LIFE && !isKeyUnknown) return last.known.find;
    const interval = last?.failed ? FAILURE_INTERVAL : UNKNOWN_KEY_INTERVAL;
    // A clock that was set back must not delay the next read.
    const elapsed = last !== undefined && time >= last.triedAt ? time - last.triedAt : interval;
    const state = last !== undefined && elapsed < interval ? last : await this.#renew(issuer, tenant);
    if (state.failed || state.known === undefined) throw unavailable(FAILURE_INTERVAL);
    return state.known.find;
  }

  /** Reads the keys of an issuer. Concurrent calls for an issuer share one read. */
  #renew(issuer: string, tenant: string): Promise<Issuer> {
    const running = this.#reads.get(issuer);
    if (running !== undefined) return running.end;
    const own = [...this.#reads.values()].filter((read) => read.tenant === tenant);
    if (this.#reads.size >= READS || own.length >= READS_PER_NAMESPACE) throw unavailable(SECOND);
    const end = this.#readKeys(issuer).finally(() => this.#reads.delete(issuer));
    this.#reads.set(issuer, { tenant, end });
    return end;
  }

  async #readKeys(issuer: string): Promise<Issuer> {
    let known = this.#issuers.peek(issuer)?.known;
    let failed = false;
    try {
      const find = createLocalJWKSet(await this.#readKeySet(issuer));
      known = { find, readAt: this.#now().getTime() };
    } catch (error) {
      failed = true;
      this.#onFailure(issuer, error);
    }
    const state = { triedAt: this.#now().getTime(), failed, known };
    this.#issuers.set(issuer, state);
    return state;
  }

  async #readKeySet(issuer: string): Promise<JSONWebKeySet> {
    // The path follows the issuer without its last slash (OpenID Connect Discovery 1.0, section 4.1).
    const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const discovery = await this.#read(address, DISCOVERY_BYTES);
    const { issuer: named, jwks_uri } = Object(discovery) as Readonly<Record<string, unknown>>;
    if (named !== issuer) throw new DocumentError("the discovery document has another issuer");
    if (typeof jwks_uri !== "string") throw new DocumentError("the discovery document has no jwks_uri");
    const keySet = (await this.#read(jwks_uri, KEYS_BYTES)) as JSONWebKeySet;
    const { keys } = Object(keySet) as Partial<JSONWebKeySet>;
    if (!Array.isArray(keys) || keys.length > KEYS) {
      throw new DocumentError(`the key set is not a list of at most ${KEYS} keys`);
    }
    return keySet;
  }
}
