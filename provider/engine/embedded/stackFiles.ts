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

/** The files of one stack: its settings (Pulumi.<stack>.yaml) and its state, with the key that decrypts both. */
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
   * Opens the files for a run, and merges a dead process's journal.
   * @param create whether a missing stack is made
   * @param changes whether the run changes the state
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
   * The configuration as plain text by `namespace:key`. Nothing is written: neither a stack nor a salt is made.
   * @throws StackSelectionError without state and file; PassphraseError, ProjectError, BackendError, UnsupportedError
   */
  async config(): Promise<ReadonlyMap<string, string>> {
    const { file, state } = await this.#read();
    if (!file.exists && !state) {
      throw new StackSelectionError(
        `There is no stack ${this.backend.stack} of the project ${this.#project.name}: neither ${file.path} nor a state of it.`,
      );
    }
    const salt = file.encryptionSalt ?? state?.salt;
    const decrypter =
      salt === undefined ? UNSALTED : await openCrypter(await readPassphrase(this.#env), salt);
    const { values } = resolveConfig(this.#project, file, decrypter);
    return new Map([...values].map(([key, { text }]) => [key, text]));
  }

  /** Sets a value of the configuration in plain text; a missing stack is made. */
  async setConfig(key: string, text: string): Promise<void> {
    await this.backend.prepare();
    await this.#initialize(await readPassphrase(this.#env), (file) => writeConfig(file, key, text));
  }

  /** @throws StackSelectionError where there is no state; PassphraseError, BackendError */
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

  /** Writes a salt and an empty state, where they are missing. True where that made the stack. @throws LockedError */
  async #initialize(passphrase: string, writeMore?: (file: StackFile) => Promise<void>): Promise<boolean> {
    const lock = await takeLock(this.backend.lockFolder);
    try {
      // Read again: until the lock was ours somebody else may have made it.
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
 * Merges the journal of a gatehouse process that died while it held the stack, and removes its lock. What was in flight
 * becomes pending.
 * @returns a text that says so; undefined where there is no such process, or another one holds the stack
 * @throws JournalConflictError where something else has changed the state since; BackendError, LockedError
 */
export async function recover(backend: FileBackend, crypter: Crypter): Promise<string | undefined> {
  const locks = await findLocks(backend.lockFolder);
  const dead = locks.filter((lock) => lock.deadOwn);
  const lines = await readJournal(backend.journalFile);
  if (dead.length === 0 && !lines) return undefined;
  if (locks.length > dead.length) return undefined;
  const lock = await takeLock(backend.lockFolder);
  try {
    // Read again: until the lock was ours somebody else may have merged it.
    const current = await readJournal(backend.journalFile);
    const recovery = current ? await merge(backend, crypter, current) : "Nothing of it was lost.";
    await removeIfThere(backend.journalFile);
    await removeLocks(dead);
    const [left] = dead;
    const what = left
      ? `An earlier run was killed (pid ${left.content.pid}, since ${left.content.timestamp}).`
      : "An earlier run ended before it had written the state.";
    return `${what} ${recovery}`;
  } finally {
    await lock.release();
  }
}

async function merge(backend: FileBackend, crypter: Crypter, lines: readonly JournalLine[]): Promise<string> {
  const head = lines[0];
  // The process was killed before the first line was on disk: it had started nothing.
  if (!head) return "It had not begun.";
  if (head.line !== "head" || head.version !== 1) {
    throw new BackendError(`${backend.journalFile} is not a journal this version knows.`);
  }
  const checkpoint = await backend.read();
  const committed = lines.findLast((line) => line.line === "commit");
  if (committed?.line === "commit" && committed.hash === checkpoint?.hash)
    return "Its state was written already.";
  if (!checkpoint || checkpoint.hash !== head.base) {
    throw new JournalConflictError(
      `${backend.journalFile} holds the steps of a run that was killed, but the state was changed since by ` +
        `something else, so they cannot be merged. Compare them with the state (refresh shows what really is), ` +
        `then delete the file.`,
    );
  }
  const snapshot = new Snapshot(checkpoint.resources, checkpoint.pendingOperations, new StateCodec(crypter));
  const { finished, inFlight } = snapshot.replay(lines);
  const { metadata } = checkpoint;
  const rendered = backend.render({ salt: crypter.saltText, metadata, ...snapshot.stored() });
  await appendCommit(backend.journalFile, rendered.hash);
  await backend.write(rendered.text);
  const pending = inFlight > 0 ? ` ${inFlight} more were in flight and are noted as pending.` : "";
  return `Its ${finished} finished steps were merged into the state.${pending}`;
}
