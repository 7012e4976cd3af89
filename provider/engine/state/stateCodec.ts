import { BackendError } from "../errors.ts";
import { isObject, isSecret, mapProps, type Props, SECRET, SIGNATURE, type Value } from "../value.ts";
import type { Crypter } from "./crypter.ts";
import type { PendingOperation, ResourceState } from "./resourceState.ts";

/** A resource as the state file holds it: every secret encrypted. */
export type StoredResource = { [key: string]: unknown };

/** A pending operation as the state file holds it. */
export type StoredOperation = { resource: StoredResource; type: PendingOperation["type"] };

/**
 * Turns resources into what the state file (and the journal) holds, and back. A secret that was read and not
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
    const out: StoredResource = {};
    for (const [key, value] of Object.entries(state)) {
      if (!isStored(key, value)) continue;
      out[key] = key === "inputs" || key === "outputs" ? this.#seal(value as Props) : value;
    }
    return out;
  }

  /** Opens every secret of a resource. Throws PassphraseError, BackendError. */
  decode(stored: StoredResource): ResourceState {
    if (typeof stored.urn !== "string" || typeof stored.type !== "string") {
      throw new BackendError("The state holds a resource without urn or type.");
    }
    const state = { ...stored } as ResourceState;
    state.custom = stored.custom === true;
    if (stored.inputs) state.inputs = this.#open(stored.inputs as Value) as Props;
    if (stored.outputs) state.outputs = this.#open(stored.outputs as Value) as Props;
    return state;
  }

  encodeOperation(operation: PendingOperation): StoredOperation {
    return { resource: this.encode(operation.resource), type: operation.type };
  }

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
        const opened: Props = {
          [SIGNATURE]: SECRET,
          value: JSON.parse(this.#crypter.decrypt(value.ciphertext)) as Value,
        };
        this.#ciphertexts.set(opened, value.ciphertext);
        return opened;
      }
      if (typeof value.plaintext === "string") {
        return { [SIGNATURE]: SECRET, value: JSON.parse(value.plaintext) as Value };
      }
      throw new BackendError("The state holds a secret of an unknown format.");
    }
    return mapProps(value, (item) => this.#open(item));
  }
}

/** False for what a field of a resource says in the state file by its absence. */
export function isStored(key: string, value: unknown): boolean {
  if (key === "custom") return true;
  if (value === undefined || value === null || value === false || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
