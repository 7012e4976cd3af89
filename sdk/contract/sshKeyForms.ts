import { createPublicKey } from "node:crypto";

type FieldCheck = (field: Buffer) => boolean;

/** What the blob of a key must hold after the name of its type. */
export interface SshKeyForm {
  /** One check for each field, in order. */
  readonly fields: readonly FieldCheck[];
  /** The checks in words, as the end of a sentence. */
  readonly allowed: string;
}

/** Bounds of OpenSSH on an RSA modulus (`SSH_RSA_MINIMUM_MODULUS_SIZE`, `SSHBUF_MAX_BIGNUM`). */
const MODULUS_BITS = { min: 1024, max: 16_384 };

const anyText: FieldCheck = () => true;

const bytes =
  (length: number): FieldCheck =>
  (field) =>
    field.length === length;

const text =
  (expected: string): FieldCheck =>
  (field) =>
    field.toString("latin1") === expected;

/** Checks for a point of a curve, uncompressed as OpenSSH demands it (RFC 5656, section 3.1). */
const point =
  (crv: "P-256" | "P-384" | "P-521", size: number): FieldCheck =>
  (field) =>
    field.length === 1 + 2 * size && field[0] === 4 && isOnCurve(crv, field.subarray(1), size);

function isOnCurve(crv: string, coordinates: Buffer, size: number): boolean {
  const x = coordinates.subarray(0, size).toString("base64url");
  const y = coordinates.subarray(size).toString("base64url");
  try {
    createPublicKey({ key: { kty: "EC", crv, x, y }, format: "jwk" });
    return true;
  } catch {
    // Node throws for a point that is not on the curve.
    return false;
  }
}

/**
 * How many bits a positive number has (`mpint`, RFC 4251 section 5); 0 for a number that is not positive or has leading
 * zeros. Those are forbidden: they would give one key several fingerprints.
 */
function bitsOf(field: Buffer): number {
  const [first = 0, second = 0] = field;
  const proper = field.length > 0 && first < 0x80 && (first > 0 || second >= 0x80);
  return proper ? (field.length - 1) * 8 + 32 - Math.clz32(first) : 0;
}

const isPositive: FieldCheck = (field) => bitsOf(field) > 0;
const isOdd: FieldCheck = (field) => ((field.at(-1) ?? 0) & 1) === 1;
const isModulus: FieldCheck = (field) =>
  bitsOf(field) >= MODULUS_BITS.min && bitsOf(field) <= MODULUS_BITS.max && isOdd(field);
// With an exponent of 1 everybody can sign.
const isExponent: FieldCheck = (field) => bitsOf(field) > 1 && isOdd(field);

const modulus = `a modulus of ${MODULUS_BITS.min} to ${MODULUS_BITS.max} bits`;
const curvePoint = (curve: string) => `an uncompressed point of ${curve}`;

/** The key types that a line may have, and what their blobs hold. */
export const SSH_KEY_FORMS: ReadonlyMap<string, SshKeyForm> = new Map([
  ["ssh-ed25519", { fields: [bytes(32)], allowed: "32 bytes" }],
  ["ssh-rsa", { fields: [isExponent, isModulus], allowed: `an odd exponent above 1 and ${modulus}` }],
  [
    "ecdsa-sha2-nistp256",
    { fields: [text("nistp256"), point("P-256", 32)], allowed: curvePoint("nistp256") },
  ],
  [
    "ecdsa-sha2-nistp384",
    { fields: [text("nistp384"), point("P-384", 48)], allowed: curvePoint("nistp384") },
  ],
  [
    "ecdsa-sha2-nistp521",
    { fields: [text("nistp521"), point("P-521", 66)], allowed: curvePoint("nistp521") },
  ],
  [
    "sk-ssh-ed25519@openssh.com",
    { fields: [bytes(32), anyText], allowed: "32 bytes and the application's name" },
  ],
  [
    "sk-ecdsa-sha2-nistp256@openssh.com",
    {
      fields: [text("nistp256"), point("P-256", 32), anyText],
      allowed: `${curvePoint("nistp256")} and the application's name`,
    },
  ],
  [
    "ssh-dss",
    {
      fields: [isModulus, (field) => bitsOf(field) === 160, isPositive, isPositive],
      allowed: `${modulus}, a subgroup of 160 bits, its generator and the key`,
    },
  ],
]);
