import { SECRET, SIGNATURE } from "../../valueMarks.ts";
import { BackendError } from "../errors.ts";
import { isObject, isSecret, mapProps, type Props, secret, type Value } from "../value.ts";
import type { Crypter } from "./crypter.ts";
import type { PendingOperation, ResourceState } from "./resourceState.ts";

/** A resource as the state file holds it: every secret encrypted. */
export type StoredResource = Readonly<Record<string, unknown>>;

/** A pending operation as the state file holds it. */
export interface StoredOperation {
  readonly resource: StoredResource;
  readonly type: PendingOperation["type"];
}

/**
 * Turns resources into the form that the state file and the journal have, and back. A secret that was read and not
 * changed keeps its ciphertext, so that an unchanged stack gives an unchanged file.
 */
export class StateCodec {
  readonly #crypter: Crypter;
  readonly #ciphertexts = new WeakMap<object, string>();

  constructor(crypter: Crypter) {
    this.#crypter = crypter;
  }

  /** Encrypts every secret of a resource. */
  encode(state: ResourceState): StoredResource {
    const stored = Object.entries(state).filter(([key, value]) => isStored(key, value));
    return Object.fromEntries(
      stored.map(([key, value]) => [key, isProps(key) ? this.#seal(value as Props) : value]),
    );
  }

  /**
   * Decrypts every secret of a resource.
   * @throws PassphraseError where the key is another one; BackendError where this is no resource
   */
  decode(stored: StoredResource): ResourceState {
    if (typeof stored.urn !== "string" || typeof stored.type !== "string") {
      throw new BackendError("The state holds a resource without urn or type.");
    }
    const { urn, type, inputs, outputs } = stored;
    return {
      ...stored,
      urn,
      type,
      custom: stored.custom === true,
      ...(inputs ? { inputs: this.#open(inputs as Value) as Props } : {}),
      ...(outputs ? { outputs: this.#open(outputs as Value) as Props } : {}),
    };
  }

  /** Encrypts every secret of an operation's resource. */
  encodeOperation(operation: PendingOperation): StoredOperation {
    return { resource: this.encode(operation.resource), type: operation.type };
  }

  /** Decrypts every secret of an operation's resource. @throws as `decode` */
  decodeOperation(stored: StoredOperation): PendingOperation {
    return { resource: this.decode(stored.resource), type: stored.type };
  }

  #seal(value: Value): Value {
    if (Array.isArray(value)) return value.map((item) => this.#seal(item));
    if (!isObject(value)) return value;
    if (isSecret(value)) {
      const known = this.#ciphertexts.get(value);
      const ciphertext = known ?? this.#crypter.encrypt(JSON.stringify(value.value ?? null));
      if (known === undefined) this.#ciphertexts.set(value, ciphertext);
      return { [SIGNATURE]: SECRET, ciphertext };
    }
    return mapProps(value, (item) => this.#seal(item));
  }

  #open(value: Value): Value {
    if (Array.isArray(value)) return value.map((item) => this.#open(item));
    if (!isObject(value)) return value;
    if (isSecret(value)) {
      if (typeof value.ciphertext === "string") {
        const opened = secret(JSON.parse(this.#crypter.decrypt(value.ciphertext)) as Value) as Props;
        this.#ciphertexts.set(opened, value.ciphertext);
        return opened;
      }
      if (typeof value.plaintext === "string") return secret(JSON.parse(value.plaintext) as Value);
      throw new BackendError("The state holds a secret of an unknown format.");
    }
    return mapProps(value, (item) => this.#open(item));
  }
}

const isProps = (key: string) => key === "inputs" || key === "outputs";

/** False for a value that a state file leaves out: false, "", null, and empty objects and lists. */
export function isStored(key: string, value: unknown): boolean {
  if (key === "custom") return true;
  if (value === undefined || value === null || value === false || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
