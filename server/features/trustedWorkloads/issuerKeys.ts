import { SECOND } from "@gatehouse-access/sdk/times";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { LRUCache } from "lru-cache";
import { BusyError } from "../../errors.ts";
import { DocumentError, type ReadDocument } from "./issuerDocuments.ts";
import { IssuerReads } from "./issuerReads.ts";

/** Time for which the keys of an issuer are used before they are read again. */
const LIFE = 600 * SECOND;
/**
 * Minimum time between two reads, when a token has a key that the issuer did not have at the last read. A client waits
 * this long for the key of an issuer that has just changed its keys.
 */
const UNKNOWN_KEY_INTERVAL = 5 * SECOND;
/** Minimum time between two reads, when the last read failed. */
const FAILURE_INTERVAL = 10 * SECOND;

const DISCOVERY_BYTES = 64 * 1024;
const KEYS_BYTES = 128 * 1024;
/** Maximum number of issuers with cached keys. */
const ISSUERS = 250;
/** Maximum number of keys of an issuer. Larger sets would fill the cache. */
const KEYS = 100;

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
 * Returns the error for a key that the issuer did not have a moment ago. The issuer may have changed its keys since, so
 * the client tries again after the next read.
 */
const unknownKey = (milliseconds: number) =>
  new BusyError(
    "the issuer did not have the key of the token a moment ago. Try again later, because the issuer may have a new key",
    { "Retry-After": String(Math.ceil(milliseconds / SECOND)) },
  );

/** Returns the id of the user who owns the namespace whose tokens need the keys. */
type OwnerOf = () => Promise<string>;

/**
 * The public keys of OpenID Connect providers (OpenID Connect Discovery 1.0). Tenants declare the issuers, so the class
 * limits the reads of each issuer, of each user, and of all users.
 */
export class IssuerKeys {
  readonly #read: ReadDocument;
  readonly #now: () => Date;
  readonly #onFailure: (issuer: string, error: unknown) => void;
  readonly #issuers = new LRUCache<string, Issuer>({ max: ISSUERS });
  readonly #reads = new IssuerReads<Issuer>();

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
   * @throws BusyError (the returned function) the keys cannot be read, or the key of the token is not known and the
   * keys were read a moment ago
   */
  finder(issuer: string, ownerOf: OwnerOf): JWTVerifyGetKey {
    return async (header, token) => {
      const last = this.#issuers.get(issuer);
      const age = last?.known === undefined ? LIFE : this.#now().getTime() - last.known.readAt;
      const { find } =
        last?.known !== undefined && age < LIFE ? last.known : await this.#renew(issuer, ownerOf);
      try {
        return await find(header, token);
      } catch (error) {
        const isCached = find === last?.known?.find;
        if (!(error instanceof errors.JWKSNoMatchingKey && isCached)) throw error;
      }
      const renewed = await this.#renew(issuer, ownerOf);
      return renewed.find(header, token);
    };
  }

  /**
   * Reads the keys of an issuer. Concurrent calls for an issuer share one read.
   * @throws BusyError the last read was a moment ago, or the read fails
   */
  async #renew(issuer: string, ownerOf: OwnerOf): Promise<NonNullable<Issuer["known"]>> {
    const last = this.#issuers.get(issuer);
    const wait = last === undefined ? 0 : this.#waitAfter(last);
    if (wait > 0) throw last?.failed ? unavailable(wait) : unknownKey(wait);
    const { known, failed } = await this.#reads.run(issuer, ownerOf, (signal) =>
      this.#readKeys(issuer, signal),
    );
    if (failed || known === undefined) throw unavailable(FAILURE_INTERVAL);
    return known;
  }

  /** Returns the time in milliseconds until an issuer may be read again. */
  #waitAfter({ triedAt, failed }: Issuer): number {
    const interval = failed ? FAILURE_INTERVAL : UNKNOWN_KEY_INTERVAL;
    const elapsed = this.#now().getTime() - triedAt;
    // A clock that was set back must not delay the next read.
    return elapsed < 0 ? 0 : interval - elapsed;
  }

  async #readKeys(issuer: string, signal: AbortSignal): Promise<Issuer> {
    let known = this.#issuers.peek(issuer)?.known;
    let failed = false;
    try {
      const find = createLocalJWKSet(await this.#readKeySet(issuer, signal));
      known = { find, readAt: this.#now().getTime() };
    } catch (error) {
      // A read that was ended in favor of another user says nothing about the issuer.
      if (signal.aborted) throw unavailable(SECOND);
      failed = true;
      this.#onFailure(issuer, error);
    }
    const state = { triedAt: this.#now().getTime(), failed, known };
    this.#issuers.set(issuer, state);
    return state;
  }

  async #readKeySet(issuer: string, signal: AbortSignal): Promise<JSONWebKeySet> {
    // The path follows the issuer without its last slash (OpenID Connect Discovery 1.0, section 4.1).
    const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const discovery = await this.#read(address, DISCOVERY_BYTES, signal);
    const { issuer: named, jwks_uri } = Object(discovery) as Readonly<Record<string, unknown>>;
    if (named !== issuer) throw new DocumentError("the discovery document has a different issuer");
    if (typeof jwks_uri !== "string") throw new DocumentError("the discovery document has no jwks_uri");
    const keySet = (await this.#read(jwks_uri, KEYS_BYTES, signal)) as JSONWebKeySet;
    const { keys } = Object(keySet) as Partial<JSONWebKeySet>;
    if (!Array.isArray(keys) || keys.length > KEYS) {
      throw new DocumentError(`the key set is not a list of at most ${KEYS} keys`);
    }
    return keySet;
  }
}
