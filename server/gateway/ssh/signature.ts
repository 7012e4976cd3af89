import { createPublicKey, hash, type KeyObject, verify } from "node:crypto";
import { LOGIN_KEY_TYPES } from "@gatehouse-access/sdk/contract";
import type { ParsedKey } from "ssh2";
import { ssh2 } from "./ssh2.ts";

/** Returns the MD5 fingerprint of a key in SSH's wire format (models section 0). */
export const fingerprintOf = (key: Buffer): string => hash("md5", key).match(/../g)?.join(":") ?? "";

/** A client's proof that it has a private key (RFC 4252, section 7). */
interface KeySignature {
  /** The public key in SSH's wire format. */
  readonly key: Buffer;
  readonly signature: Buffer;
  /** The signed bytes. */
  readonly signed: Buffer;
  /** The digest of an RSA signature. Undefined for RSA signatures with SHA-1, and for keys of other types. */
  readonly digest: string | undefined;
}

/**
 * Returns true if a signature is valid. Supports the key types in `LOGIN_KEY_TYPES`. Rejects RSA signatures with SHA-1,
 * because they can be forged.
 */
export function isValidSignature({ key, signature, signed, digest }: KeySignature): boolean {
  try {
    const type = stringsOf(key, 1)[0]?.toString("latin1") ?? "";
    if (!LOGIN_KEY_TYPES.includes(type)) return false;
    if (type.startsWith("sk-")) return isValidTouchSignature(type, key, signature, signed);
    const parsed = ssh2.utils.parseKey(key);
    if (parsed instanceof Error) return false;
    if (parsed.type === "ssh-rsa" && digest !== "sha256" && digest !== "sha512") return false;
    return (parsed as ParsedKey).verify(signed, signature, digest as string) === true;
  } catch {
    return false;
  }
}

/** The flag with which a security key reports that its user has touched it. */
const TOUCHED = 0x01;
/** Length of a security key's flags and counter, in bytes. */
const STATE = 5;

/**
 * Verifies the signature of a FIDO security key, and checks that the user has touched the security key (OpenSSH,
 * PROTOCOL.u2f).
 */
function isValidTouchSignature(type: string, key: Buffer, signature: Buffer, signed: Buffer): boolean {
  const state = signature.subarray(-STATE);
  const signatureBytes = signature.subarray(0, -STATE);
  if (((state[0] ?? 0) & TOUCHED) === 0) return false;
  const digestOf = (data: Buffer) => hash("sha256", data, "buffer");
  const signedBytes = (application: Buffer) =>
    Buffer.concat([digestOf(application), state, digestOf(signed)]);
  if (type === "sk-ssh-ed25519@openssh.com") {
    const [, point, application] = stringsOf(key, 3);
    return verify(null, signedBytes(application as Buffer), edKey(point as Buffer), signatureBytes);
  }
  const [, , point, application] = stringsOf(key, 4);
  const [r, s] = stringsOf(signatureBytes, 2).map(to32Bytes);
  const ecdsa = { key: ecKey(point as Buffer), dsaEncoding: "ieee-p1363" } as const;
  return verify(
    "sha256",
    signedBytes(application as Buffer),
    ecdsa,
    Buffer.concat([r as Buffer, s as Buffer]),
  );
}

/**
 * Reads the first length-prefixed fields of a buffer.
 * @throws RangeError the buffer is too short
 */
function stringsOf(bytes: Buffer, count: number): Buffer[] {
  let offset = 0;
  return Array.from({ length: count }, () => {
    const start = offset + 4;
    offset = start + bytes.readUInt32BE(offset);
    if (offset > bytes.length) throw new RangeError("the buffer is too short for a field");
    return bytes.subarray(start, offset);
  });
}

/** Returns the bytes of a number, padded or truncated to 32 bytes. */
const to32Bytes = (number: Buffer): Buffer => Buffer.concat([Buffer.alloc(32), number]).subarray(-32);

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
