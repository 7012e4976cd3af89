import { createHash, createPublicKey } from "node:crypto";

type FieldCheck = (field: Buffer) => boolean;

/** The fields that an SSH key blob must have after the name of the key type. */
interface SshKeyForm {
  /** One check for each field of the blob, in order. */
  readonly fields: readonly FieldCheck[];
  /** Description of the required fields, as the end of a sentence. */
  readonly allowed: string;
  /** True for a key type that the service stores for compatibility, but refuses for logins and for new keys. */
  readonly isRefused?: boolean;
}

/** OpenSSH's limits for the number of bits of an RSA modulus (`SSH_RSA_MINIMUM_MODULUS_SIZE`, `SSHBUF_MAX_BIGNUM`). */
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

/**
 * Returns a check that a field is an uncompressed point of an elliptic curve, as OpenSSH requires (RFC 5656, section
 * 3.1).
 */
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
    // Node.js throws an error if the point is not on the curve.
    return false;
  }
}

/**
 * Returns the number of bits of a positive number (`mpint`, RFC 4251 section 5). Returns 0 for a number that is not
 * positive or has leading zeros. Leading zeros are forbidden: with them, one key could have several fingerprints.
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
// An RSA key with the exponent 1 is rejected, because an attacker could forge its signatures.
const isExponent: FieldCheck = (field) => bitsOf(field) > 1 && isOdd(field);

const modulus = `a modulus of ${MODULUS_BITS.min} to ${MODULUS_BITS.max} bits`;
const curvePoint = (curve: string) => `an uncompressed point of ${curve}`;

/** The known key types, and the required content of their blobs. */
const SSH_KEY_FORMS: ReadonlyMap<string, SshKeyForm> = new Map([
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
      // DSA signatures use SHA-1, so OpenSSH removed DSA keys.
      isRefused: true,
    },
  ],
]);

/** The key types that this project's service accepts for logins. */
export const LOGIN_KEY_TYPES: readonly string[] = [...SSH_KEY_FORMS].flatMap(([type, { isRefused }]) =>
  isRefused ? [] : [type],
);

/**
 * Returns the type of a public key if this project's service does not accept the type for logins. Returns undefined for
 * all other keys. Other servers may accept such keys: the versions 0.19 and 0.27 do.
 * @param line the key as a line of an authorized_keys file
 */
export function refusedKeyType(line: string): string | undefined {
  const [type = ""] = line.trimStart().split(/\s/, 1);
  return SSH_KEY_FORMS.get(type)?.isRefused ? type : undefined;
}

/** An SSH public key without comment, options and white space. */
export interface SshPublicKey {
  /** Algorithm, for example `ssh-ed25519`. */
  readonly type: string;
  /** The key in base64, as in a line of an authorized_keys file. */
  readonly blob: string;
  /** MD5 of the key, 16 colon-separated lower-case hex pairs (models section 0). */
  readonly fingerprint: string;
}

/** The first base64 characters of every OpenSSH private key. The key begins with this string and a zero byte. */
const PRIVATE_KEY_START = Buffer.from("openssh-key-v1").toString("base64").replace("=", "");

/**
 * Returns true for a private key in OpenSSH format (even without its first and last line), in PEM format or in PuTTY
 * format.
 */
export const isPrivateKey = (text: string): boolean =>
  ["PRIVATE KEY", "PuTTY-User-Key-File", PRIVATE_KEY_START].some((part) => text.includes(part));

/**
 * Reads one OpenSSH public key line: `type base64 [comment]`. For two lines with the same key, the results are equal,
 * regardless of comments and white space. The function rejects every key that OpenSSH rejects.
 * @throws Error with the reason, without the content of the line
 */
export function parseSshPublicKey(line: string): SshPublicKey {
  const text = line.trim();
  if (isPrivateKey(text)) throw new Error("must be a public key, not a private key");
  if (text.includes("\n")) throw new Error("must be one OpenSSH public key line, not several");
  const [type = "", encoded = ""] = text.split(/\s+/, 2);
  const form = SSH_KEY_FORMS.get(type);
  if (!form) {
    throw new Error(
      `must be an OpenSSH public key line that starts with one of ${[...SSH_KEY_FORMS.keys()].join(", ")}`,
    );
  }
  const blob = Buffer.from(encoded, "base64");
  const padded = blob.toString("base64");
  if (encoded === "" || (encoded !== padded && encoded !== padded.replaceAll("=", ""))) {
    throw new Error("must contain the base64-encoded key after the key type");
  }
  const [name, ...fields] = readFields(blob);
  const fits =
    fields.length === form.fields.length && fields.every((field, at) => form.fields[at]?.(field) ?? false);
  if (name?.toString("latin1") !== type || !fits) {
    throw new Error(`must contain a complete ${type} key after its type: ${form.allowed}`);
  }
  const digest = createHash("md5").update(blob).digest("hex");
  return { type, blob: padded, fingerprint: digest.match(/../g)?.join(":") ?? "" };
}

/** Returns the SHA256 fingerprint of a key, in the notation of OpenSSH: `SHA256:` and the digest in base64. */
export const sha256Fingerprint = ({ blob }: Pick<SshPublicKey, "blob">): string =>
  `SHA256:${createHash("sha256").update(Buffer.from(blob, "base64")).digest("base64").replaceAll("=", "")}`;

/** Returns the normalized line of a key: without comment and options, with one space. */
export function sshPublicKeyLine(key: SshPublicKey): string {
  return `${key.type} ${key.blob}`;
}

/**
 * Returns the length-prefixed fields of a key blob (RFC 4253, section 6.6). Returns an empty list if the blob is
 * truncated.
 */
function readFields(blob: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  let offset = 0;
  while (offset < blob.length) {
    if (offset + 4 > blob.length) return [];
    const end = offset + 4 + blob.readUInt32BE(offset);
    if (end > blob.length) return [];
    fields.push(blob.subarray(offset + 4, end));
    offset = end;
  }
  return fields;
}
