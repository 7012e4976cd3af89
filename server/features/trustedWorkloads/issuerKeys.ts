import { SECOND } from "@gatehouse-access/sdk/times";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { LRUCache } from "lru-cache";
import { BusyError } from "../../errors.ts";
import { DocumentError, type ReadDocument } from "./issuerDocuments.ts";
import { IssuerReads } from "./issuerReads.ts";

/** Time for which the keys of an issuer are used before they are read again, in milliseconds. */
const LIFE = 600 * SECOND;
/**
 * Minimum time between two reads if a token is signed with an unknown key, in milliseconds. If an issuer has just
 * changed its keys, a client waits this long for the new key.
 */
const UNKNOWN_KEY_INTERVAL = 5 * SECOND;
/** Minimum time between two reads if the last read failed, in milliseconds. */
const FAILURE_INTERVAL = 10 * SECOND;

const DISCOVERY_BYTES = 64 * 1024;
const KEYS_BYTES = 128 * 1024;
/** Maximum number of issuers with cached keys. */
const ISSUERS = 250;
/** Maximum number of keys of an issuer. A larger key set would fill the cache. */
const KEYS = 100;

/** The result of the last read of an issuer's keys. */
interface Issuer {
  readonly triedAt: number;
  readonly failed: boolean;
  /** The keys from the last successful read. Undefined if no read was successful. */
  readonly known: { readonly find: JWTVerifyGetKey; readonly readAt: number } | undefined;
}

/**
 * Returns the error for keys that cannot be read. The response does not contain the cause, because the cause can reveal
 * details of the network.
 */
const unavailable = (milliseconds: number) =>
  new BusyError(
    "the keys of the token's issuer cannot be read. Check that the service can reach the issuer, or try again later",
    { "Retry-After": String(Math.ceil(milliseconds / SECOND)) },
  );

/**
 * Returns the error for a key that was not in the key set at the latest read, a few seconds ago. The issuer may have
 * changed its keys since then, so the client should try again after the next read.
 */
const unknownKey = (milliseconds: number) =>
  new BusyError(
    "the issuer did not have the key of the token a moment ago. Try again later, because the issuer may have a new key",
    { "Retry-After": String(Math.ceil(milliseconds / SECOND)) },
  );

/** Returns the id of the user who owns the namespace that needs the keys. */
type OwnerOf = () => Promise<string>;

/**
 * Reads and caches the public keys of OpenID Connect providers (OpenID Connect Discovery 1.0). Tenants declare the
 * issuers, so this class limits the reads of each issuer, for each user, and for all users together.
 */
export class IssuerKeys {
  readonly #read: ReadDocument;
  readonly #now: () => Date;
  readonly #onFailure: (issuer: string, error: unknown) => void;
  readonly #issuers = new LRUCache<string, Issuer>({ max: ISSUERS });
  readonly #reads = new IssuerReads<Issuer>();

  /**
   * @param read reads a document of an issuer
   * @param onFailure called with the reason if the keys of an issuer cannot be read
   */
  constructor(read: ReadDocument, now: () => Date, onFailure: (issuer: string, error: unknown) => void) {
    this.#read = read;
    this.#now = now;
    this.#onFailure = onFailure;
  }

  /**
   * Returns a function that finds the key of a token. If the key is unknown, the function reads the keys again, because
   * the issuer may have a new key.
   * @param issuer an issuer that a trusted workload of the namespace declares
   * @throws BusyError (the returned function) the keys cannot be read, or the key is unknown and the keys were read
   *   only a few seconds ago
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
   * @throws BusyError the last read was only a few seconds ago, or the read fails
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

  /** Returns the time until the issuer may be read again, in milliseconds. */
  #waitAfter({ triedAt, failed }: Issuer): number {
    const interval = failed ? FAILURE_INTERVAL : UNKNOWN_KEY_INTERVAL;
    const elapsed = this.#now().getTime() - triedAt;
    // If the clock was set back, the next read must not be delayed.
    return elapsed < 0 ? 0 : interval - elapsed;
  }

  async #readKeys(issuer: string, signal: AbortSignal): Promise<Issuer> {
    let known = this.#issuers.peek(issuer)?.known;
    let failed = false;
    try {
      const find = createLocalJWKSet(await this.#readKeySet(issuer, signal));
      known = { find, readAt: this.#now().getTime() };
    } catch (error) {
      // A read that was aborted in favor of a different user is not a failure of the issuer.
      if (signal.aborted) throw unavailable(SECOND);
      failed = true;
      this.#onFailure(issuer, error);
    }
    const state = { triedAt: this.#now().getTime(), failed, known };
    this.#issuers.set(issuer, state);
    return state;
  }

  async #readKeySet(issuer: string, signal: AbortSignal): Promise<JSONWebKeySet> {
    // The path is appended to the issuer, without the issuer's trailing slash (OpenID Connect Discovery 1.0, section
    // 4.1).
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
