import { BackendError, JournalConflictError, PassphraseError, StackSelectionError } from "../errors.ts";
import { removeIfThere } from "../files.ts";
import {
  type Project,
  readStackFile,
  resolveConfig,
  type StackConfig,
  type StackFile,
  writeConfig,
  writeSalt,
} from "../project.ts";
import { type Crypter, newCrypter, openCrypter, readPassphrase, StateCodec } from "../state/crypter.ts";
import { type Checkpoint, FileBackend, findLocks, removeLocks, takeLock } from "../state/fileBackend.ts";
import { appendCommit, type JournalLine, readJournal, Snapshot } from "../state/snapshot.ts";

export interface OpenedStack {
  readonly crypter: Crypter;
  readonly config: StackConfig;
  readonly createdStack: boolean;
  /** True if the stack does not exist yet. In this case, the opened stack is empty, and nothing is written. */
  readonly isMissing: boolean;
  /**
   * Writes the stack's encryption salt to the settings file if the file does not contain it. Lock the stack before the
   * call.
   */
  readonly addSalt: () => Promise<void>;
  readonly notes: readonly string[];
}

/** The action if the stack is missing: throw an error, create the stack, or plan its creation. */
export type IfMissing = "error" | "create" | "plan";

/**
 * The files of one stack: the settings (Pulumi.<stack>.yaml) and the state. This class also opens the key that decrypts
 * the secrets in both files.
 */
export class StackFiles {
  readonly backend: FileBackend;
  readonly #project: Project;
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(project: Project, stack: string, backendFolder: string, env: NodeJS.ProcessEnv) {
    this.backend = new FileBackend(backendFolder, project.name, stack);
    this.#project = project;
    this.#folder = backendFolder;
    this.#env = env;
  }

  /**
   * Opens the files for a run. If an earlier process was killed, merges its journal into the state.
   * @throws StackSelectionError, PassphraseError, ProjectError, BackendError, UnsupportedError, LockedError or
   *   JournalConflictError
   */
  async open(ifMissing: IfMissing): Promise<OpenedStack> {
    await this.backend.check();
    let { file, state } = await this.#read();
    if (!state && ifMissing === "error") throw await this.#missing();
    const passphrase = await readPassphrase(this.#env);
    let createdStack = false;
    if (!state && ifMissing === "create") {
      await this.backend.prepare();
      createdStack = await this.#initialize(passphrase);
      ({ file, state } = await this.#read());
    }
    const crypter = await crypterOf(passphrase, state?.salt ?? file.encryptionSalt);
    const configCrypter = file.encryptionSalt ? await openCrypter(passphrase, file.encryptionSalt) : crypter;
    const config = resolveConfig(this.#project, file, configCrypter);
    const addSalt = () => this.#addSalt(crypter);
    if (!state) return { crypter, config, createdStack, isMissing: true, addSalt, notes: [] };
    const notes = createdStack ? [`Created the stack ${this.backend.stack}.`] : [];
    const recovered = await recover(this.backend, crypter);
    if (recovered) notes.push(recovered);
    return { crypter, config, createdStack, isMissing: false, addSalt, notes };
  }

  async #addSalt({ saltText }: Crypter): Promise<void> {
    await this.backend.prepare();
    const { file } = await this.#read();
    if (file.encryptionSalt === undefined) await writeSalt(file, saltText);
  }

  /**
   * Returns the configuration values in plaintext, by `namespace:key`. Does not create a stack or an encryption salt.
   * @throws StackSelectionError if the state and the settings are both missing; PassphraseError, ProjectError,
   *   BackendError, UnsupportedError
   */
  async config(): Promise<ReadonlyMap<string, string>> {
    const { file, state } = await this.#read();
    if (!file.exists && !state) {
      throw new StackSelectionError(
        `The project ${this.#project.name} has no stack ${this.backend.stack}: neither ${file.path} nor a state exists.`,
      );
    }
    const salt = file.encryptionSalt ?? state?.salt;
    const decrypter =
      salt === undefined ? UNSALTED : await openCrypter(await readPassphrase(this.#env), salt);
    const { values } = resolveConfig(this.#project, file, decrypter);
    return new Map([...values].map(([key, { text }]) => [key, text]));
  }

  /** Sets a configuration value in plaintext. Creates the stack if it does not exist. */
  async setConfig(key: string, text: string): Promise<void> {
    await this.backend.prepare();
    await this.#initialize(await readPassphrase(this.#env), (file) => writeConfig(file, key, text));
  }

  /** @throws StackSelectionError if there is no state; PassphraseError, BackendError */
  async crypter(): Promise<Crypter> {
    const { file, state } = await this.#read();
    const salt = state?.salt ?? file.encryptionSalt;
    if (!state || !salt) throw await this.#missing();
    return openCrypter(await readPassphrase(this.#env), salt);
  }

  async #read(): Promise<{ file: StackFile; state: Checkpoint | undefined }> {
    const { stack } = this.backend;
    const [file, state] = await Promise.all([readStackFile(this.#project, stack), this.backend.read()]);
    return { file, state };
  }

  async #missing(): Promise<StackSelectionError> {
    const { name } = this.#project;
    const known = await FileBackend.stacks(this.#folder, name);
    return StackSelectionError.missing(name, this.backend.stack, known);
  }

  /**
   * Creates the encryption salt and the state if they are missing. Returns true if this call created the stack.
   * @throws LockedError
   */
  async #initialize(passphrase: string, writeMore?: (file: StackFile) => Promise<void>): Promise<boolean> {
    const lock = await takeLock(this.backend.lockFolder);
    try {
      // Reads the stack again, since a different process may have created it before this process locked it.
      const { file, state } = await this.#read();
      const { saltText } = await crypterOf(passphrase, state?.salt ?? file.encryptionSalt);
      if (file.encryptionSalt === undefined) await writeSalt(file, saltText);
      await writeMore?.(file);
      if (state) return false;
      const empty = { salt: saltText, resources: [], pendingOperations: [], metadata: {} };
      await this.backend.write(this.backend.render(empty).text);
      return true;
    } finally {
      await lock.release();
    }
  }
}

const crypterOf = (passphrase: string, salt: string | undefined): Promise<Crypter> =>
  salt ? openCrypter(passphrase, salt) : newCrypter(passphrase);

const UNSALTED = {
  decrypt(): never {
    throw new PassphraseError("A secret cannot be decrypted: the stack has no encryption salt.");
  },
};

/**
 * Recovers the steps of an earlier Gatehouse process that died while it held the lock of the stack. Merges the journal
 * of that process into the state and removes the lock. The unfinished operations of that process become pending.
 * @returns a message about the merge; undefined if no process died, or if a running process holds the lock
 * @throws JournalConflictError if a different program has changed the state in the meantime; BackendError, LockedError
 */
async function recover(backend: FileBackend, crypter: Crypter): Promise<string | undefined> {
  const locks = await findLocks(backend.lockFolder);
  const dead = locks.filter((lock) => lock.deadOwn);
  const lines = await readJournal(backend.journalFile);
  if (dead.length === 0 && !lines) return undefined;
  if (locks.length > dead.length) return undefined;
  const lock = await takeLock(backend.lockFolder);
  try {
    // Reads the journal again, since a different process may have merged it before this process locked the stack.
    const current = await readJournal(backend.journalFile);
    const recovery = current ? await merge(backend, crypter, current) : "No steps were lost.";
    await removeIfThere(backend.journalFile);
    await removeLocks(dead);
    const [left] = dead;
    const cause = left
      ? `An earlier run was killed (pid ${left.content.pid}, since ${left.content.timestamp}).`
      : "An earlier run ended before it wrote the state.";
    return `${cause} ${recovery}`;
  } finally {
    await lock.release();
  }
}

async function merge(backend: FileBackend, crypter: Crypter, lines: readonly JournalLine[]): Promise<string> {
  const head = lines[0];
  // The earlier process was killed before it wrote the first line of the journal to the disk, so it had not started any
  // steps.
  if (!head) return "The earlier run had started no steps.";
  if (head.line !== "head" || head.version !== 1) {
    throw new BackendError(`${backend.journalFile} has a format that this version does not support.`);
  }
  const checkpoint = await backend.read();
  const committed = lines.findLast((line) => line.line === "commit");
  if (committed?.line === "commit" && committed.hash === checkpoint?.hash)
    return "The earlier run had already written the state.";
  if (!checkpoint || checkpoint.hash !== head.base) {
    throw new JournalConflictError(
      `${backend.journalFile} contains the steps of a killed run, but another program has changed the state since ` +
        `then, so the steps cannot be merged. Compare them with the state (refresh reads the live objects), ` +
        `then delete the file.`,
    );
  }
  const snapshot = new Snapshot(checkpoint.resources, checkpoint.pendingOperations, new StateCodec(crypter));
  const { finished, inFlight } = snapshot.replay(lines);
  const { metadata } = checkpoint;
  const rendered = backend.render({ salt: crypter.saltText, metadata, ...snapshot.stored() });
  await appendCommit(backend.journalFile, rendered.hash);
  await backend.write(rendered.text);
  const pending = inFlight > 0 ? ` ${inFlight} more steps were in flight and are now pending.` : "";
  return `${finished} finished steps of the earlier run were merged into the state.${pending}`;
}
