import { backendFolder, chooseBackend } from "./backendUrl.ts";
import { type Crypter, newCrypter, openCrypter, readPassphrase } from "./crypter.ts";
import { EmbeddedRun } from "./embeddedRun.ts";
import { StackSelectionError } from "./errors.ts";
import { FileBackend } from "./fileBackend.ts";
import type { Command, Plan, Result } from "./model.ts";
import { type Project, requireNodeRuntime } from "./project.ts";
import { readConfig } from "./readConfig.ts";
import { recover } from "./recover.ts";
import type { RunSettings } from "./runPass.ts";
import type {
  DestroyOptions,
  PreviewOptions,
  RefreshRunOptions,
  Stack,
  StackOptions,
  UpOptions,
} from "./stack.ts";
import { readStackFile, resolveConfig, writeSalt } from "./stackConfig.ts";
import { checkTargetOptions, type TargetOptions } from "./targets.ts";

/** A stack run by the engine in this package: needs no Pulumi CLI. */
export class EmbeddedStack implements Stack {
  readonly engine = "embedded";
  readonly project: string;
  readonly stack: string;
  readonly #project: Project;
  readonly #options: StackOptions;
  readonly #env: NodeJS.ProcessEnv;
  readonly #backend: FileBackend;

  private constructor(project: Project, stack: string, folder: string, options: StackOptions) {
    this.#project = project;
    this.project = project.name;
    this.stack = stack;
    this.#options = options;
    this.#env = options.env ?? process.env;
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

  async encrypt(text: string): Promise<string> {
    return (await this.#crypter()).encrypt(text);
  }

  async decrypt(encrypted: string): Promise<string> {
    return (await this.#crypter()).decrypt(encrypted);
  }

  /** That of the stack as it is. */
  async #crypter(): Promise<Crypter> {
    const existing = await this.#backend.read();
    const salt = existing?.salt ?? (await readStackFile(this.#project, this.stack)).encryptionSalt;
    if (!existing || !salt) throw this.#missing();
    return openCrypter(await readPassphrase(this.#env), salt);
  }

  #missing(): StackSelectionError {
    return new StackSelectionError(
      `There is no stack ${this.stack} of the project ${this.project} in the backend.`,
    );
  }

  async #run(command: Command, targets: TargetOptions & { create?: boolean }): Promise<EmbeddedRun> {
    const started = Date.now();
    const create = (command === "preview" || command === "up") && targets.create !== false;
    checkTargetOptions(targets);
    await this.#backend.prepare();
    const notes: string[] = [];
    const file = await readStackFile(this.#project, this.stack);
    const passphrase = await readPassphrase(this.#env);
    const existing = await this.#backend.read();
    if (!existing && !create) throw this.#missing();
    let crypter: Crypter;
    const salt = existing?.salt ?? file.encryptionSalt;
    if (salt) crypter = await openCrypter(passphrase, salt);
    else crypter = await newCrypter(passphrase);
    if (file.encryptionSalt === undefined) await writeSalt(file, crypter.saltText);
    const configCrypter =
      file.encryptionSalt && file.encryptionSalt !== crypter.saltText
        ? await openCrypter(passphrase, file.encryptionSalt)
        : crypter;
    const config = resolveConfig(this.#project, file, configCrypter);
    if (!existing) {
      const empty = { salt: crypter.saltText, resources: [], pendingOperations: [], metadata: {} };
      await this.#backend.write(this.#backend.render(empty).text);
      notes.push(`Created the stack ${this.stack}.`);
    }
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
      createdStack: !existing,
      notes,
      started,
    };
    if (this.#options.signal) settings.signal = this.#options.signal;
    return new EmbeddedRun(settings);
  }
}

async function onlyStack(folder: string, project: string): Promise<string> {
  const stacks = await FileBackend.stacks(folder, project);
  if (stacks.length === 1) return stacks[0] as string;
  const known = stacks.length === 0 ? "there is none yet" : `there are ${stacks.join(", ")}`;
  throw new StackSelectionError(`Name the stack with --stack or PULUMI_STACK (of ${project}, ${known}).`);
}
