import { createCipheriv, createDecipheriv, pbkdf2, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { PassphraseError } from "../errors.ts";

const derive = promisify(pbkdf2);
const ROUNDS = 1_000_000;
const PROBE = "pulumi";
const TAG_LENGTH = 16;

// Deriving a key takes most of a second, so each (passphrase, salt) is derived once in a process.
const derivedKeys = new Map<string, Promise<Buffer>>();

function deriveKey(passphrase: string, salt: Buffer): Promise<Buffer> {
  const id = `${salt.toString("base64")}:${passphrase}`;
  let key = derivedKeys.get(id);
  if (!key) {
    key = derive(passphrase, salt, ROUNDS, 32, "sha256");
    derivedKeys.set(id, key);
  }
  return key;
}

/** Encrypts and decrypts with a key derived from the stack's passphrase, as Pulumi's passphrase provider does. */
export interface Crypter {
  /** The text that the stack's settings keep as `encryptionsalt`, and its state as `salt`. */
  readonly saltText: string;
  encrypt(plaintext: string): string;
  /** @throws PassphraseError where the text was not encrypted with this key */
  decrypt(ciphertext: string): string;
}

function crypterFor(key: Buffer, saltText: string): Crypter {
  return {
    saltText,
    encrypt(plaintext) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce);
      const body = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `v1:${nonce.toString("base64")}:${body.toString("base64")}`;
    },
    decrypt(ciphertext) {
      const [version, nonce, body] = ciphertext.split(":");
      if (version !== "v1" || !nonce || !body) throw new PassphraseError("A secret has an unknown format.");
      const bytes = Buffer.from(body, "base64");
      try {
        const options = { authTagLength: TAG_LENGTH };
        const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(nonce, "base64"), options);
        decipher.setAuthTag(bytes.subarray(-TAG_LENGTH));
        const opened = [decipher.update(bytes.subarray(0, -TAG_LENGTH)), decipher.final()];
        return Buffer.concat(opened).toString("utf8");
      } catch {
        throw new PassphraseError(
          "It cannot be decrypted: it was encrypted with another key, or changed since.",
        );
      }
    },
  };
}

/**
 * The passphrase: PULUMI_CONFIG_PASSPHRASE, which may be empty, or the content of the file that
 * PULUMI_CONFIG_PASSPHRASE_FILE names.
 * @throws PassphraseError where neither is set, or the file cannot be read
 */
export async function readPassphrase(env: NodeJS.ProcessEnv): Promise<string> {
  if (env.PULUMI_CONFIG_PASSPHRASE !== undefined) return env.PULUMI_CONFIG_PASSPHRASE;
  const file = env.PULUMI_CONFIG_PASSPHRASE_FILE;
  if (!file) {
    throw new PassphraseError(
      "Set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE to a file that holds it: " +
        "the stack's secrets are encrypted with it.",
    );
  }
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw new PassphraseError(
      `PULUMI_CONFIG_PASSPHRASE_FILE (${file}) cannot be read: ${(error as Error).message}`,
    );
  }
}

/**
 * The crypter of a salt that was made before.
 * @throws PassphraseError where it was made with another passphrase
 */
export async function openCrypter(passphrase: string, saltText: string): Promise<Crypter> {
  const [version, salt, ...probe] = saltText.split(":");
  if (version !== "v1" || !salt || probe.length === 0) {
    throw new PassphraseError("The stack's encryption salt has an unknown format.");
  }
  const crypter = crypterFor(await deriveKey(passphrase, Buffer.from(salt, "base64")), saltText);
  let opened: string;
  try {
    opened = crypter.decrypt(probe.join(":"));
  } catch {
    throw new PassphraseError("The passphrase is not the one this stack was made with.");
  }
  if (opened !== PROBE) throw new PassphraseError("The passphrase is not the one this stack was made with.");
  return crypter;
}

/** A crypter with a new salt, for a new stack. */
export async function newCrypter(passphrase: string): Promise<Crypter> {
  const salt = randomBytes(8);
  const key = await deriveKey(passphrase, salt);
  const saltText = `v1:${salt.toString("base64")}:${crypterFor(key, "").encrypt(PROBE)}`;
  return crypterFor(key, saltText);
}
