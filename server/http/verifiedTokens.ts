import type { KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import { digestOf } from "../secrets/digest.ts";
import type { TokenClaims } from "./tokens.ts";

/** What a token says whose signature was checked. */
export interface VerifiedToken {
  readonly claims: TokenClaims;
  /** Unix second from which on it is valid. */
  readonly notBefore: number;
  /** Unix second from which on it is not; Infinity for one that does not expire. */
  readonly expires: number;
}

const MAXIMUM = 20_000;

/** By the key that checked them, so that a key which is replaced takes them with it. Tokens are kept as digests. */
const verifiedBy = new WeakMap<KeyObject, LRUCache<string, VerifiedToken>>();

/**
 * The claims of a token that the key has verified before and that is in time now. Only the signature is taken as
 * checked: what the caller may do is still read from the database with every request.
 * @param second unix time
 */
export function recallToken(publicKey: KeyObject, token: string, second: number): TokenClaims | undefined {
  const known = verifiedBy.get(publicKey)?.get(digestOf(token));
  return known && known.notBefore <= second && second < known.expires ? known.claims : undefined;
}

/** Keeps the claims of a token that the key has verified. */
export function rememberToken(publicKey: KeyObject, token: string, verified: VerifiedToken): void {
  let tokens = verifiedBy.get(publicKey);
  if (tokens === undefined) {
    tokens = new LRUCache({ max: MAXIMUM });
    verifiedBy.set(publicKey, tokens);
  }
  tokens.set(digestOf(token), verified);
}
