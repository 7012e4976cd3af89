import type { KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Services } from "../services.ts";
import { signDeviceToken } from "./tokens.ts";

/** Tokens kept, about 0.8 kilobytes each. */
const MAXIMUM = 100_000;

/** By the key that signed them, so that a key which is replaced takes its tokens with it. */
const tokensOf = new WeakMap<KeyObject, LRUCache<string, string>>();

/**
 * A token for a device: the one that this process gave it last, while its signing key lives, since a signature
 * costs more than all the rest of a report.
 */
export async function deviceToken(
  services: Services,
  device: { readonly uid: string; readonly tenant: string },
): Promise<string> {
  const { privateKey } = services.keys;
  let tokens = tokensOf.get(privateKey);
  if (tokens === undefined) {
    tokens = new LRUCache({ max: MAXIMUM });
    tokensOf.set(privateKey, tokens);
  }
  // The tenant is a part of what the uid is made of.
  const known = tokens.get(device.uid);
  if (known !== undefined) return known;
  const token = await signDeviceToken(services, device);
  tokens.set(device.uid, token);
  return token;
}
