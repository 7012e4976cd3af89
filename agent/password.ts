import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { UsageError } from "./identity.ts";

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

/** The scrypt parameters of new hashes. A hash takes 64 MiB of memory and about 0.2 seconds. */
const COST: ScryptOptions = { N: 65_536, r: 8, p: 1, maxmem: 128 * 1024 * 1024 };
const LENGTH = 32;

/** Returns the hash of a password as `scrypt$<salt>$<hash>`, with salt and hash in base64url. */
export async function hashPassword(password: string): Promise<string> {
  if (password === "") throw new UsageError("the password must not be empty");
  const salt = randomBytes(16);
  const hash = await derive(password, salt, LENGTH, COST);
  return `scrypt$${salt.toString("base64url")}$${hash.toString("base64url")}`;
}

/**
 * Returns a function that checks passwords against a hash. Without a hash, the function rejects every password.
 * @throws UsageError the hash does not have the form that {@link hashPassword} returns
 */
export function passwordCheck(stored: string | undefined): (password: string) => Promise<boolean> {
  if (!stored) return async () => false;
  const [, salt, hash] = /^scrypt\$([\w-]{22})\$([\w-]{43})$/.exec(stored) ?? [];
  if (salt === undefined || hash === undefined) {
    throw new UsageError(
      "GATEHOUSE_AGENT_PASSWORD_HASH is invalid. Set it to the output of `gatehouse-agent hash-password`",
    );
  }
  const expected = Buffer.from(hash, "base64url");
  return async (password) =>
    timingSafeEqual(await derive(password, Buffer.from(salt, "base64url"), LENGTH, COST), expected);
}
