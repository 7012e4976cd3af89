import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { Semaphore } from "../../secrets/Semaphore.ts";

/** Maximum number of requests that wait for a new key pair. Creating a key pair takes about a second. */
const MAXIMUM_WAITING = 20;

// Key pairs are created one at a time, because each creation occupies a thread that logins need.
const semaphore = new Semaphore(1, MAXIMUM_WAITING, "too many key pairs are being created: try again later");

/** A key pair in the format that SSH logins use. */
export interface RsaKeyPair {
  /** Private key, PEM (PKCS#1). */
  readonly pem: string;
  /** MD5 of the public key (models section 0). */
  readonly fingerprint: string;
}

/**
 * Creates an RSA key pair outside the main thread.
 * @param bits length of the modulus
 * @param signal cancels the creation if it is aborted before the creation starts
 * @throws BusyError too many creations are already waiting
 */
export async function newRsaKeyPair(bits: number, signal: AbortSignal): Promise<RsaKeyPair> {
  const { privateKey, publicKey } = await semaphore.run(
    () => promisify(generateKeyPair)("rsa", { modulusLength: bits }),
    signal,
  );
  return {
    pem: privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
    fingerprint: parseSshPublicKey(`ssh-rsa ${sshBlobOf(publicKey).toString("base64")}`).fingerprint,
  };
}

/** Returns an RSA public key in SSH format (RFC 4253, section 6.6). */
export function sshBlobOf(publicKey: KeyObject): Buffer {
  const { e = "", n = "" } = publicKey.export({ format: "jwk" });
  return Buffer.concat([field(Buffer.from("ssh-rsa")), field(positive(e)), field(positive(n))]);
}

function field(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/**
 * Adds a zero byte before a number whose highest bit is set, because SSH would otherwise read the number as negative.
 */
function positive(base64url: string): Buffer {
  const bytes = Buffer.from(base64url, "base64url");
  return bytes.readUInt8(0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
}
