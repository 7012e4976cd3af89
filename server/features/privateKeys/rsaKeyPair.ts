import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { Semaphore } from "../../secrets/Semaphore.ts";

/** Jobs that may wait; making a key pair takes about a second. */
const MAXIMUM_WAITING = 20;

// One at a time: each occupies a thread that logins need too.
const semaphore = new Semaphore(1, MAXIMUM_WAITING, "too many keys at once, try again");

/** A key pair in the form that an SSH entry uses. */
export interface RsaKeyPair {
  /** Private key, PEM (PKCS#1). */
  readonly pem: string;
  /** MD5 of the public key (models section 0). */
  readonly fingerprint: string;
}

/**
 * Makes an RSA key pair off the main thread.
 * @param bits length of its modulus
 * @param signal drops the job if it still waits when the signal is aborted
 * @throws BusyError too many jobs wait already
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

/** An RSA public key as SSH has it (RFC 4253, section 6.6). */
export function sshBlobOf(publicKey: KeyObject): Buffer {
  const { e = "", n = "" } = publicKey.export({ format: "jwk" });
  return Buffer.concat([field(Buffer.from("ssh-rsa")), field(positive(e)), field(positive(n))]);
}

function field(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Adds a zero byte before a number whose first bit is set, which would count as negative without it. */
function positive(base64url: string): Buffer {
  const bytes = Buffer.from(base64url, "base64url");
  return bytes.readUInt8(0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
}
