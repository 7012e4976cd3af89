import { StackSelectionError } from "../errors.ts";
import type { Command, Plan, Result } from "../model.ts";
import { backendFolder, chooseBackend } from "../project/chooseBackend.ts";
import { type Project, requireNodeRuntime } from "../project/project.ts";
import { readConfig } from "../project/readConfig.ts";
import {
  readStackFile,
  resolveConfig,
  type StackFile,
  writeConfig,
  writeSalt,
} from "../project/stackConfig.ts";
import type {
  DestroyOptions,
  PreviewOptions,
  RefreshRunOptions,
  Stack,
  StackOptions,
  StateResource,
  UpOptions,
} from "../stack.ts";
import { type Crypter, newCrypter, openCrypter, readPassphrase } from "../state/crypter.ts";
import { type Checkpoint, FileBackend } from "../state/fileBackend.ts";
import { takeLock } from "../state/stackLock.ts";
import { checkTargetOptions, type TargetOptions } from "../targets.ts";
import { EmbeddedRun } from "./lockedRun.ts";
import type { RunSettings } from "./pass.ts";
import { recover } from "./recover.ts";

/** A stack run by the engine in this package: needs no Pulumi CLI. */
export class EmbeddedStack implements Stack {
  readonly engine = "embedded";
  readonly project: string;
  readonly stack: string;
  readonly #project: Project;
  readonly #options: StackOptions;
  readonly #env: NodeJS.ProcessEnv;
  readonly #folder: string;
  readonly #backend: FileBackend;

  private constructor(project: Project, stack: string, folder: string, options: StackOptions) {
    this.#project = project;
    this.project = project.name;
    this.stack = stack;
    this.#options = options;
    this.#env = options.env ?? process.env;
    this.#folder = folder;
    this.#backend = new FileBackend(folder, project.name, stack);
  }

  /** Opens a stack. Throws ProjectError, BackendError, StackSelectionError, UnsupportedError. */
  static async open(project: Project, options: StackOptions): Promise<EmbeddedStack> {
    requireNodeRuntime(project);
    const env = options.env ?? process.env;
    const folder = backendFolder(await chooseBackend(project, env), project, env);
    const stack = options.stack ?? env.PULUMI_STACK ?? (await onlyStack(folder, project.name));
    if (!/^[A-Za-z0-9_.-]{1,100}$/.test(stack)) {
      throw new StackSelectionError(
        `"${stack}" cannot be the name of a stack: letters, digits, "-", "_" and ".".`,
      );
    }
    return new EmbeddedStack(project, stack, folder, options);
  }

  async preview(options: PreviewOptions = {}): Promise<Plan> {
    return (await this.#run("preview", options)).preview(options);
  }

  async up(options: UpOptions = {}): Promise<Result> {
    return (await this.#run("up", options)).up(options);
  }

  async refresh(options: RefreshRunOptions = {}): Promise<Result> {
    return (await this.#run("refresh", options)).refresh(options);
  }

  async destroy(options: DestroyOptions = {}): Promise<Result> {
    return (await this.#run("destroy", options)).destroy(options);
  }

  async drift(options: TargetOptions = {}): Promise<Result> {
    return (await this.#run("drift", options)).drift(options);
  }

  config(): Promise<ReadonlyMap<string, string>> {
    return readConfig(this.#project, this.#backend, this.#env);
  }

  async setConfig(key: string, text: string): Promise<void> {
    await this.#backend.prepare();
    const passphrase = await readPassphrase(this.#env);
    await this.#initialise(passphrase, (file) => writeConfig(file, key, text));
  }

  async resources(): Promise<readonly StateResource[]> {
    return ((await this.#backend.read())?.resources ?? []) as unknown as StateResource[];
  }

  async encrypt(text: string): Promise<string> {
    return (await this.#crypter()).encrypt(text);
  }

  async decrypt(encrypted: string): Promise<string> {
    return (await this.#crypter()).decrypt(encrypted);
  }

  /** That of the stack as it is. */
  async #crypter(): Promise<Crypter> {
    const { file, state } = await this.#stored();
    const salt = state?.salt ?? file.encryptionSalt;
    if (!state || !salt) throw await this.#missing();
    return openCrypter(await readPassphrase(this.#env), salt);
  }

  async #missing(): Promise<StackSelectionError> {
    return StackSelectionError.missing(
      this.project,
      this.stack,
      await FileBackend.stacks(this.#folder, this.project),
    );
  }

  async #stored(): Promise<{ file: StackFile; state: Checkpoint | undefined }> {
    const [file, state] = await Promise.all([readStackFile(this.#project, this.stack), this.#backend.read()]);
    return { file, state };
  }

  async #run(command: Command, options: TargetOptions & { create?: boolean }): Promise<EmbeddedRun> {
    const started = Date.now();
    checkTargetOptions(options);
    await this.#backend.prepare();
    let { file, state } = await this.#stored();
    const create = (command === "preview" || command === "up") && options.create !== false;
    if (!state && !create) throw await this.#missing();
    const passphrase = await readPassphrase(this.#env);
    const changes = command !== "preview" && command !== "drift";
    let createdStack = false;
    if (!state || (changes && file.encryptionSalt === undefined)) {
      createdStack = await this.#initialise(passphrase);
      ({ file, state } = await this.#stored());
    }
    const crypter = await crypterOf(passphrase, state?.salt ?? file.encryptionSalt);
    const configCrypter =
      file.encryptionSalt && file.encryptionSalt !== crypter.saltText
        ? await openCrypter(passphrase, file.encryptionSalt)
        : crypter;
    const config = resolveConfig(this.#project, file, configCrypter);
    const notes = createdStack ? [`Created the stack ${this.stack}.`] : [];
    const recovered = await recover(this.#backend, crypter);
    if (recovered) notes.push(recovered);
    const settings: RunSettings = {
      command,
      project: this.#project,
      stack: this.stack,
      backend: this.#backend,
      crypter,
      config,
      env: this.#env,
      parallel: this.#options.parallel ?? 16,
      emit: this.#options.onEvent ?? (() => {}),
      createdStack,
      notes,
      started,
    };
    if (this.#options.signal) settings.signal = this.#options.signal;
    return new EmbeddedRun(settings);
  }

  /**
   * Writes what a first command needs: the salt into the stack's settings, and an empty state. True where the stack was
   * made. Throws LockedError while another command runs.
   * @param write what else is to be written into the settings
   */
  async #initialise(passphrase: string, write?: (file: StackFile) => Promise<void>): Promise<boolean> {
    const lock = await takeLock(this.#backend.lockFolder);
    try {
      // Read again: until the lock was ours somebody else may have made it.
      const { file, state } = await this.#stored();
      const { saltText } = await crypterOf(passphrase, state?.salt ?? file.encryptionSalt);
      if (file.encryptionSalt === undefined) await writeSalt(file, saltText);
      await write?.(file);
      if (state) return false;
      const empty = { salt: saltText, resources: [], pendingOperations: [], metadata: {} };
      await this.#backend.write(this.#backend.render(empty).text);
      return true;
    } finally {
      await lock.release();
    }
  }
}

const crypterOf = (passphrase: string, salt: string | undefined): Promise<Crypter> =>
  salt ? openCrypter(passphrase, salt) : newCrypter(passphrase);

async function onlyStack(folder: string, project: string): Promise<string> {
  const stacks = await FileBackend.stacks(folder, project);
  if (stacks.length === 1) return stacks[0] as string;
  throw StackSelectionError.unnamed(project, stacks);
}
