import { createPublicKey, hash, type KeyObject, verify } from "node:crypto";
import type { ParsedKey } from "ssh2";
import { ssh2 } from "./ssh2.ts";

/** The fingerprint of a key as SSH has it (models section 0). */
export const fingerprintOf = (key: Buffer): string => hash("md5", key).match(/../g)?.join(":") ?? "";

/** What a client sends to prove that it has a private key (RFC 4252, section 7). */
export interface KeySignature {
  /** The public key, as SSH has it. */
  readonly key: Buffer;
  readonly signature: Buffer;
  /** What was signed. */
  readonly signed: Buffer;
  /** The digest of an RSA signature; undefined for SHA-1, and for other keys. */
  readonly digest: string | undefined;
}

/**
 * True if the signature is valid. Accepts every type of key that the service stores, except DSA and RSA with SHA-1,
 * which can be forged.
 */
export function isValidSignature({ key, signature, signed, digest }: KeySignature): boolean {
  try {
    const type = stringsOf(key, 1)[0]?.toString("latin1") ?? "";
    if (type.startsWith("sk-")) return isValidTouchSignature(type, key, signature, signed);
    const parsed = ssh2.utils.parseKey(key);
    if (parsed instanceof Error) return false;
    if (parsed.type === "ssh-rsa" && digest !== "sha256" && digest !== "sha512") return false;
    if (parsed.type === "ssh-dss") return false;
    return (parsed as ParsedKey).verify(signed, signature, digest as string) === true;
  } catch {
    return false;
  }
}

/** The flag of a security key that somebody has touched it. */
const TOUCHED = 0x01;
/** Bytes of a security key's flags and counter. */
const STATE = 5;

/** Verifies the signature of a FIDO security key (OpenSSH, PROTOCOL.u2f), which says that it was touched. */
function isValidTouchSignature(type: string, key: Buffer, signature: Buffer, signed: Buffer): boolean {
  const state = signature.subarray(-STATE);
  const made = signature.subarray(0, -STATE);
  if (((state[0] ?? 0) & TOUCHED) === 0) return false;
  const digestOf = (data: Buffer) => hash("sha256", data, "buffer");
  const over = (application: Buffer) => Buffer.concat([digestOf(application), state, digestOf(signed)]);
  if (type === "sk-ssh-ed25519@openssh.com") {
    const [, point, application] = stringsOf(key, 3);
    return verify(null, over(application as Buffer), edKey(point as Buffer), made);
  }
  const [, , point, application] = stringsOf(key, 4);
  const [r, s] = stringsOf(made, 2).map(fixed);
  const ecdsa = { key: ecKey(point as Buffer), dsaEncoding: "ieee-p1363" } as const;
  return verify("sha256", over(application as Buffer), ecdsa, Buffer.concat([r as Buffer, s as Buffer]));
}

/** The first length-prefixed fields of a buffer. @throws RangeError it is cut short */
function stringsOf(bytes: Buffer, count: number): Buffer[] {
  let offset = 0;
  return Array.from({ length: count }, () => {
    const start = offset + 4;
    offset = start + bytes.readUInt32BE(offset);
    if (offset > bytes.length) throw new RangeError("a field is cut short");
    return bytes.subarray(start, offset);
  });
}

/** A number as 32 bytes. */
const fixed = (number: Buffer): Buffer => Buffer.concat([Buffer.alloc(32), number]).subarray(-32);

const edKey = (point: Buffer): KeyObject =>
  createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x: point.toString("base64url") } });

const ecKey = (point: Buffer): KeyObject =>
  createPublicKey({
    format: "jwk",
    key: {
      kty: "EC",
      crv: "P-256",
      x: point.subarray(1, 33).toString("base64url"),
      y: point.subarray(33, 65).toString("base64url"),
    },
  });
