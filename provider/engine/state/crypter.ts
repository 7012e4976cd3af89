import { createCipheriv, createDecipheriv, pbkdf2, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { PromiseCache } from "@gatehouse-access/sdk/promises";
import { SECRET, SIGNATURE } from "../../engineMarks.ts";
import { BackendError, PassphraseError } from "../errors.ts";
import { isObject, isSecret, mapProps, type Props, secret, type Value } from "../value.ts";
import type { PendingOperation, ResourceState } from "./resourceState.ts";

const derive = promisify(pbkdf2);
const ROUNDS = 1_000_000;
const PROBE = "pulumi";
const TAG_LENGTH = 16;

// Cache of derived keys. A derivation takes almost a second, so a process derives the key for each pair of passphrase
// and salt only once.
const derivedKeys = new PromiseCache<string, Buffer>();

function deriveKey(passphrase: string, salt: Buffer): Promise<Buffer> {
  const id = `${salt.toString("base64")}:${passphrase}`;
  return derivedKeys.get(id, () => derive(passphrase, salt, ROUNDS, 32, "sha256"));
}

/**
 * Encrypts and decrypts strings with a key that is derived from the stack's passphrase. The format is the format of
 * Pulumi's passphrase provider.
 */
export interface Crypter {
  /**
   * The encryption salt as a string. It is the value of `encryptionsalt` in the stack's settings and of `salt` in the
   * state.
   */
  readonly saltText: string;
  encrypt(plaintext: string): string;
  /** @throws PassphraseError if the string was not encrypted with this key */
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
          "The text cannot be decrypted: it was encrypted with a different key, or was changed later.",
        );
      }
    },
  };
}

/**
 * Returns the passphrase: the value of `PULUMI_CONFIG_PASSPHRASE`, which may be empty, or the content of the file
 * `PULUMI_CONFIG_PASSPHRASE_FILE`.
 * @throws PassphraseError if neither variable is set, or the file cannot be read
 */
export async function readPassphrase(env: NodeJS.ProcessEnv): Promise<string> {
  if (env.PULUMI_CONFIG_PASSPHRASE !== undefined) return env.PULUMI_CONFIG_PASSPHRASE;
  const file = env.PULUMI_CONFIG_PASSPHRASE_FILE;
  if (!file) {
    throw new PassphraseError("The passphrase of the stack's secrets is missing.", {
      remedy:
        "Set PULUMI_CONFIG_PASSPHRASE, or set PULUMI_CONFIG_PASSPHRASE_FILE to a file that contains the passphrase.",
    });
  }
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw new PassphraseError(fileFailureText("read", `${file} (PULUMI_CONFIG_PASSPHRASE_FILE)`, error));
  }
}

/** @throws PassphraseError if the salt belongs to a different passphrase */
export async function openCrypter(passphrase: string, saltText: string): Promise<Crypter> {
  const [version, salt, ...probe] = saltText.split(":");
  if (version !== "v1" || !salt || probe.length === 0) {
    throw new PassphraseError("The stack's encryption salt has an unknown format.");
  }
  const crypter = crypterFor(await deriveKey(passphrase, Buffer.from(salt, "base64")), saltText);
  let opened: string | undefined;
  try {
    opened = crypter.decrypt(probe.join(":"));
  } catch {
    // The salt contains an encrypted test string. If this key cannot decrypt the test string, the passphrase is wrong.
  }
  if (opened !== PROBE) throw PassphraseError.wrong();
  return crypter;
}

export async function newCrypter(passphrase: string): Promise<Crypter> {
  const salt = randomBytes(8);
  const key = await deriveKey(passphrase, salt);
  const saltText = `v1:${salt.toString("base64")}:${crypterFor(key, "").encrypt(PROBE)}`;
  return crypterFor(key, saltText);
}

/** A resource in the format of the state file, with all secrets encrypted. */
export type StoredResource = Readonly<Record<string, unknown>>;

export interface StoredOperation {
  readonly resource: StoredResource;
  readonly type: PendingOperation["type"];
}

/**
 * Converts resources to and from the format of the state file and the journal. An unchanged secret keeps its
 * ciphertext, so that the state file of an unchanged stack does not change.
 */
export class StateCodec {
  readonly #crypter: Crypter;
  readonly #ciphertexts = new WeakMap<object, string>();

  constructor(crypter: Crypter) {
    this.#crypter = crypter;
  }

  encode(state: ResourceState): StoredResource {
    const stored = Object.entries(state).filter(([key, value]) => isStored(key, value));
    return Object.fromEntries(
      stored.map(([key, value]) => [key, isProps(key) ? replaceSecrets(value as Props, this.#seal) : value]),
    );
  }

  /**
   * @throws PassphraseError if a secret was encrypted with a different key; BackendError if the value is not a resource
   */
  decode(stored: StoredResource): ResourceState {
    if (typeof stored.urn !== "string" || typeof stored.type !== "string") {
      throw new BackendError("The state contains a resource without urn or type.");
    }
    const { urn, type, inputs, outputs } = stored;
    return {
      ...stored,
      urn,
      type,
      custom: stored.custom === true,
      ...(inputs ? { inputs: replaceSecrets(inputs as Props, this.#open) as Props } : {}),
      ...(outputs ? { outputs: replaceSecrets(outputs as Props, this.#open) as Props } : {}),
    };
  }

  encodeOperation(operation: PendingOperation): StoredOperation {
    return { resource: this.encode(operation.resource), type: operation.type };
  }

  decodeOperation(stored: StoredOperation): PendingOperation {
    return { resource: this.decode(stored.resource), type: stored.type };
  }

  readonly #seal = (marked: Props): Value => {
    const known = this.#ciphertexts.get(marked);
    const ciphertext = known ?? this.#crypter.encrypt(JSON.stringify(marked.value ?? null));
    if (known === undefined) this.#ciphertexts.set(marked, ciphertext);
    return { [SIGNATURE]: SECRET, ciphertext };
  };

  readonly #open = (stored: Props): Value => {
    if (typeof stored.ciphertext === "string") {
      const opened = secret(JSON.parse(this.#crypter.decrypt(stored.ciphertext)) as Value) as Props;
      this.#ciphertexts.set(opened, stored.ciphertext);
      return opened;
    }
    if (typeof stored.plaintext === "string") return secret(JSON.parse(stored.plaintext) as Value);
    throw new BackendError("The state contains a secret in an unknown format.");
  };
}

/** Returns a copy of a value in which each secret is replaced by the result of `replace`. */
function replaceSecrets(value: Value, replace: (marked: Props) => Value): Value {
  if (Array.isArray(value)) return value.map((item) => replaceSecrets(item, replace));
  if (!isObject(value)) return value;
  return isSecret(value) ? replace(value) : mapProps(value, (item) => replaceSecrets(item, replace));
}

const isProps = (key: string) => key === "inputs" || key === "outputs";

/** Returns false for values that the state file omits: false, "", null, and empty objects and lists. */
export function isStored(key: string, value: unknown): boolean {
  if (key === "custom") return true;
  if (value === undefined || value === null || value === false || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
