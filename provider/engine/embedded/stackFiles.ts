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
  readonly notes: readonly string[];
}

/** The files of one stack: its settings (Pulumi.<stack>.yaml) and its state, and the key that decrypts both. */
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
   * Opens the files for a run, and merges the journal of a dead process.
   * @param create true to create a missing stack
   * @param changes true if the run changes the state
   * @throws StackSelectionError, PassphraseError, ProjectError, BackendError, UnsupportedError, LockedError or
   * JournalConflictError
   */
  async open({ create, changes }: { create: boolean; changes: boolean }): Promise<OpenedStack> {
    await this.backend.prepare();
    let { file, state } = await this.#read();
    if (!state && !create) throw await this.#missing();
    const passphrase = await readPassphrase(this.#env);
    let createdStack = false;
    if (!state || (changes && file.encryptionSalt === undefined)) {
      createdStack = await this.#initialize(passphrase);
      ({ file, state } = await this.#read());
    }
    const crypter = await crypterOf(passphrase, state?.salt ?? file.encryptionSalt);
    const configCrypter = file.encryptionSalt ? await openCrypter(passphrase, file.encryptionSalt) : crypter;
    const config = resolveConfig(this.#project, file, configCrypter);
    const notes = createdStack ? [`Created the stack ${this.backend.stack}.`] : [];
    const recovered = await recover(this.backend, crypter);
    if (recovered) notes.push(recovered);
    return { crypter, config, createdStack, notes };
  }

  /**
   * Returns the configuration as plain text by `namespace:key`. Creates neither a stack nor a salt.
   * @throws StackSelectionError if state and settings are missing; PassphraseError, ProjectError, BackendError,
   *   UnsupportedError
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

  /** Sets a value of the configuration in plain text. Creates a missing stack. */
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

  /** Writes a missing salt and a missing state. Returns true if it created the stack. @throws LockedError */
  async #initialize(passphrase: string, writeMore?: (file: StackFile) => Promise<void>): Promise<boolean> {
    const lock = await takeLock(this.backend.lockFolder);
    try {
      // The stack is read again, since another process may have created it before this process had the lock.
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
 * Merges the journal of a gatehouse process that died while it held the stack, and removes its lock. Unfinished
 * operations become pending.
 * @returns a message about the merge; undefined if there is no such process, or if another process holds the stack
 * @throws JournalConflictError if another program has changed the state since then; BackendError, LockedError
 */
export async function recover(backend: FileBackend, crypter: Crypter): Promise<string | undefined> {
  const locks = await findLocks(backend.lockFolder);
  const dead = locks.filter((lock) => lock.deadOwn);
  const lines = await readJournal(backend.journalFile);
  if (dead.length === 0 && !lines) return undefined;
  if (locks.length > dead.length) return undefined;
  const lock = await takeLock(backend.lockFolder);
  try {
    // The journal is read again, since another process may have merged it before this process had the lock.
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
  // The process was killed before the first line was on disk, so it had not started any step.
  if (!head) return "It had started no steps.";
  if (head.line !== "head" || head.version !== 1) {
    throw new BackendError(`${backend.journalFile} has a format that this version does not support.`);
  }
  const checkpoint = await backend.read();
  const committed = lines.findLast((line) => line.line === "commit");
  if (committed?.line === "commit" && committed.hash === checkpoint?.hash)
    return "It had already written its state.";
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
  const pending = inFlight > 0 ? ` ${inFlight} more were in flight and are now pending.` : "";
  return `Its ${finished} finished steps were merged into the state.${pending}`;
}
