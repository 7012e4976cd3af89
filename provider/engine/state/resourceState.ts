import { createCipheriv, createDecipheriv, pbkdf2, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { SECRET, SIGNATURE } from "../../engineMarks.ts";
import { makeUrn, typeName, urnName, urnOfProvider, urnQualifiedType, urnScope, urnType } from "../../urn.ts";
import { BackendError, PassphraseError } from "../errors.ts";
import type { Diagnostic } from "../model.ts";
import { isObject, isSecret, mapProps, type Props, secret, type Value } from "../value.ts";

/** One resource in the state, its secrets in clear but marked (see value.ts). Fields of newer versions are kept. */
export interface ResourceState {
  readonly urn: string;
  readonly custom: boolean;
  readonly type: string;
  readonly id?: string;
  readonly inputs?: Props;
  readonly outputs?: Props;
  readonly parent?: string;
  readonly protect?: boolean;
  readonly external?: boolean;
  readonly delete?: boolean;
  readonly taint?: boolean;
  readonly pendingReplacement?: boolean;
  readonly dependencies?: readonly string[];
  readonly propertyDependencies?: Readonly<Record<string, readonly string[]>>;
  readonly provider?: string;
  readonly initErrors?: readonly string[];
  readonly additionalSecretOutputs?: readonly string[];
  readonly aliases?: readonly string[];
  /** The id by which the program imported it. */
  readonly importID?: string;
  readonly retainOnDelete?: boolean;
  readonly deletedWith?: string;
  readonly replaceWith?: readonly string[];
  readonly ignoreChanges?: readonly string[];
  readonly replaceOnChanges?: readonly string[];
  readonly customTimeouts?: CustomTimeouts;
  readonly viewOf?: string;
  readonly created?: string;
  readonly modified?: string;
  readonly [other: string]: unknown;
}

/** How long operations on a resource may take, as the program wrote it. */
export interface CustomTimeouts {
  readonly create?: string;
  readonly update?: string;
  readonly delete?: string;
  readonly read?: string;
}

/** An operation that was in flight when a run stopped; `type` as Pulumi names it. */
export interface PendingOperation {
  readonly resource: ResourceState;
  readonly type: "creating" | "updating" | "deleting" | "reading" | "importing";
}

export function isProviderState(state: Pick<ResourceState, "type">): boolean {
  return state.type.startsWith("pulumi:providers:");
}

/** The URNs of all resources that must exist before this one: parent, dependencies, provider, `deletedWith`. */
export function references(state: ResourceState): string[] {
  const urns = new Set<string>(state.dependencies ?? []);
  for (const list of Object.values(state.propertyDependencies ?? {})) for (const urn of list) urns.add(urn);
  if (state.parent) urns.add(state.parent);
  if (state.deletedWith) urns.add(state.deletedWith);
  for (const urn of state.replaceWith ?? []) urns.add(urn);
  if (state.viewOf) urns.add(state.viewOf);
  if (state.provider) urns.add(urnOfProvider(state.provider));
  urns.delete(state.urn);
  return [...urns];
}

/**
 * Gives resources, and references to them, their new URNs. A URN names the types of its parents, so the children of a
 * renamed resource get a new one too, even where the program has not registered them yet.
 * @param states parents before their children
 * @param renamed new URNs by the old ones
 */
export function renameAll(
  states: readonly ResourceState[],
  renamed: ReadonlyMap<string, string>,
): ResourceState[] {
  if (renamed.size === 0) return [...states];
  const all = new Map(renamed);
  for (const { urn, parent } of states) {
    const now = parent === undefined ? undefined : all.get(parent);
    if (now === undefined || all.has(urn)) continue;
    const { stack, project } = urnScope(urn);
    const followed = makeUrn(stack, project, now, urnType(urn), urnName(urn));
    if (urnQualifiedType(followed) !== urnQualifiedType(urn)) all.set(urn, followed);
  }
  const to = (urn: string): string => all.get(urn) ?? urn;
  return states.map((state) =>
    [state.urn, ...references(state)].some((urn) => all.has(urn))
      ? { ...withReferences(state, to), urn: to(state.urn) }
      : state,
  );
}

/** The resource with other references; those that become undefined are gone. The provider always stays. */
export function withReferences(state: ResourceState, to: (urn: string) => string | undefined): ResourceState {
  const each = (urns: readonly string[]): string[] => urns.flatMap((urn) => to(urn) ?? []);
  const { parent, deletedWith, dependencies, replaceWith, propertyDependencies, provider } = state;
  const ofProvider = provider && to(urnOfProvider(provider));
  return {
    ...state,
    ...(parent && { parent: to(parent) }),
    ...(deletedWith && { deletedWith: to(deletedWith) }),
    ...(dependencies && { dependencies: each(dependencies) }),
    ...(replaceWith && { replaceWith: each(replaceWith) }),
    ...(propertyDependencies && {
      propertyDependencies: Object.fromEntries(
        Object.entries(propertyDependencies).map(([key, urns]) => [key, each(urns)]),
      ),
    }),
    ...(ofProvider && { provider: ofProvider + provider.slice(provider.lastIndexOf("::")) }),
  };
}

/**
 * Orders resources so that each comes after those it refers to; otherwise the given order is kept. That goes for objects
 * that are marked for deletion as well. Circles cannot be ordered and stay as given.
 */
export function topologicalOrder(states: readonly ResourceState[]): ResourceState[] {
  const byUrn = Map.groupBy(states, ({ urn }) => urn);
  const ordered: ResourceState[] = [];
  const seen = new Set<ResourceState>();
  const visit = (start: ResourceState): void => {
    const work: { state: ResourceState; next: ResourceState[]; at: number }[] = [];
    const enter = (state: ResourceState): void => {
      if (seen.has(state)) return;
      seen.add(state);
      work.push({ state, next: references(state).flatMap((urn) => byUrn.get(urn) ?? []), at: 0 });
    };
    enter(start);
    while (work.length > 0) {
      const frame = work[work.length - 1] as (typeof work)[number];
      const dependency = frame.next[frame.at++];
      if (dependency) enter(dependency);
      else {
        ordered.push(frame.state);
        work.pop();
      }
    }
  };
  for (const state of states) visit(state);
  return ordered;
}

/** The URNs of the resources at which `start` is true, and of all that depend on them. @param ordered dependencies first */
export function withDependents(
  ordered: readonly ResourceState[],
  start: (urn: string) => boolean,
): Set<string> {
  const reached = new Set<string>();
  for (const state of ordered) {
    if (start(state.urn) || references(state).some((urn) => reached.has(urn))) reached.add(state.urn);
  }
  return reached;
}

/** How people get rid of the warning of an operation that nobody can settle. */
export const WAY_OUT = "look for it, then `gatehouse refresh --clear-pending-creates` forgets the operation";

/** The warning that a run was stopped while an operation was in flight, with a way out. */
export function pendingWarning(type: PendingOperation["type"], urn: string): Diagnostic {
  const advice =
    type === "creating"
      ? `nobody knows whether it was made; if its next creation does not settle that, ${WAY_OUT}.`
      : "nobody knows whether that was done; `gatehouse refresh` finds out.";
  const message = `An earlier run was stopped while ${type} the ${typeName(urnType(urn))} ${urnName(urn)}: ${advice}`;
  return { severity: "warning", message, urn };
}

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

/** PULUMI_CONFIG_PASSPHRASE (may be empty), or the content of PULUMI_CONFIG_PASSPHRASE_FILE. @throws PassphraseError */
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

/** @throws PassphraseError where the salt was made with another passphrase */
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
    // It was encrypted with another key.
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

/** A resource as the state file holds it: every secret encrypted. */
export type StoredResource = Readonly<Record<string, unknown>>;

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

  encode(state: ResourceState): StoredResource {
    const stored = Object.entries(state).filter(([key, value]) => isStored(key, value));
    return Object.fromEntries(
      stored.map(([key, value]) => [key, isProps(key) ? replaceSecrets(value as Props, this.#seal) : value]),
    );
  }

  /** @throws PassphraseError where the key is another one; BackendError where this is no resource */
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
    throw new BackendError("The state holds a secret of an unknown format.");
  };
}

/** The value with each secret in it replaced. */
function replaceSecrets(value: Value, replace: (marked: Props) => Value): Value {
  if (Array.isArray(value)) return value.map((item) => replaceSecrets(item, replace));
  if (!isObject(value)) return value;
  return isSecret(value) ? replace(value) : mapProps(value, (item) => replaceSecrets(item, replace));
}

const isProps = (key: string) => key === "inputs" || key === "outputs";

/** False for a value that a state file leaves out: false, "", null, and empty objects and lists. */
export function isStored(key: string, value: unknown): boolean {
  if (key === "custom") return true;
  if (value === undefined || value === null || value === false || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
