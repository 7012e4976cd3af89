import { createHash } from "node:crypto";
import { SSH_KEY_FORMS } from "./sshKeyForms.ts";

/** An SSH public key alone, without comment, options and white space. */
export interface SshPublicKey {
  /** Algorithm, for instance `ssh-ed25519`. */
  readonly type: string;
  /** The key in base64, as in a line of an authorized_keys file. */
  readonly blob: string;
  /** MD5 of the key, 16 colon-separated lower-case hex pairs (models section 0). */
  readonly fingerprint: string;
}

/**
 * Reads one OpenSSH public key line: `type base64 [comment]`. Two lines with the same key give equal results, whatever
 * their comments and white space. A key that OpenSSH would refuse is refused.
 * @throws Error saying what is wrong with the line, without repeating it
 */
export function parseSshPublicKey(line: string): SshPublicKey {
  const text = line.trim();
  if (text.includes("\n")) throw new Error("must be one OpenSSH public key line, not several");
  if (text.includes("PRIVATE KEY")) throw new Error("must be a public key; this is a private one");
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
    throw new Error("must hold the key in base64 after its type");
  }
  const [name, ...fields] = readFields(blob);
  const fits =
    fields.length === form.fields.length && fields.every((field, at) => form.fields[at]?.(field) ?? false);
  if (name?.toString("latin1") !== type || !fits) {
    throw new Error(`must hold a complete ${type} key after its type: ${form.allowed}`);
  }
  const digest = createHash("md5").update(blob).digest("hex");
  return { type, blob: padded, fingerprint: digest.match(/../g)?.join(":") ?? "" };
}

/** The one line that all lines with this key are turned into: no comment, no options, one space. */
export function sshPublicKeyLine(key: SshPublicKey): string {
  return `${key.type} ${key.blob}`;
}

/** The length-prefixed fields of a key blob (RFC 4253, section 6.6); empty when it is cut short. */
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
