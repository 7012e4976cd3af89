import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { UsageError } from "./identity.ts";

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

/** What a new hash costs: 64 MiB and some 0.2 seconds. */
const COST: ScryptOptions = { N: 65_536, r: 8, p: 1, maxmem: 128 * 1024 * 1024 };
const LENGTH = 32;

/** The hash of a password: `scrypt$<salt>$<hash>`, both in base64url. */
export async function hashPassword(password: string): Promise<string> {
  if (password === "") throw new UsageError("the password must not be empty");
  const salt = randomBytes(16);
  const hash = await derive(password, salt, LENGTH, COST);
  return `scrypt$${salt.toString("base64url")}$${hash.toString("base64url")}`;
}

/**
 * The check of passwords against a hash; without one, none fits.
 * @throws UsageError the hash is not of the form that {@link hashPassword} makes
 */
export function passwordCheck(stored: string | undefined): (password: string) => Promise<boolean> {
  if (!stored) return async () => false;
  const [, salt, hash] = /^scrypt\$([\w-]{22})\$([\w-]{43})$/.exec(stored) ?? [];
  if (salt === undefined || hash === undefined) {
    throw new UsageError(
      "GATEHOUSE_AGENT_PASSWORD_HASH has a value that cannot be used: it must be what `gatehouse-agent hash-password` prints",
    );
  }
  const expected = Buffer.from(hash, "base64url");
  return async (password) =>
    timingSafeEqual(await derive(password, Buffer.from(salt, "base64url"), LENGTH, COST), expected);
}
