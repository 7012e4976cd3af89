import { BackendError, checkTargetOptions, requireConfirmation, StackSelectionError } from "../errors.ts";
import { removeIfThere } from "../files.ts";
import {
  type Command,
  type DestroyOptions,
  hasChanges,
  NOTHING_TO_DO,
  type Plan,
  type PreviewOptions,
  type RefreshRunOptions,
  type Result,
  type Stack,
  type StackOptions,
  type StateResource,
  summarize,
  type TargetOptions,
  type UpOptions,
} from "../model.ts";
import {
  backendFolder,
  chooseBackend,
  onlyStack,
  type Project,
  parseStackName,
  requireBackendFolder,
  requireNodeRuntime,
} from "../project.ts";
import { FileBackend, type HistoryEntry, takeLock } from "../state/fileBackend.ts";
import { Journal } from "../state/snapshot.ts";
import { HeldPlan } from "./deploy/deployment.ts";
import {
  conclude,
  deletePass,
  deployPass,
  openPass,
  type Pass,
  type PassResult,
  type RunSettings,
  refreshPass,
  requireTargets,
  stackOutputs,
} from "./passes.ts";
import { type IfMissing, StackFiles } from "./stackFiles.ts";

// The Pulumi CLI uses this organization for all stacks in file backends.
const ORGANIZATION = "organization";

/**
 * Returns the name of a stack in a file backend.
 * @throws StackSelectionError if the organization or the project of the stack does not match
 */
function ownName({ name: own }: Project, stack: string): string {
  const { organization = ORGANIZATION, project = own, name } = parseStackName(stack);
  if (organization !== ORGANIZATION) {
    throw new StackSelectionError(
      `The stack ${stack} does not exist: a file backend has no organizations. Use ${name}, or ${ORGANIZATION}/${own}/${name}.`,
    );
  }
  if (project !== own) {
    throw new StackSelectionError(
      `The stack ${stack} belongs to the project ${project}, but Pulumi.yaml belongs to ${own}.`,
    );
  }
  return name;
}

export class EmbeddedStack implements Stack {
  readonly engine = "embedded";
  readonly project: string;
  readonly stack: string;
  readonly selector: string;
  readonly #project: Project;
  readonly #options: StackOptions;
  readonly #env: NodeJS.ProcessEnv;
  readonly #files: StackFiles;

  private constructor(project: Project, stack: string, folder: string, options: StackOptions) {
    this.project = project.name;
    this.stack = stack;
    this.selector = stack;
    this.#project = project;
    this.#options = options;
    this.#env = options.env ?? process.env;
    this.#files = new StackFiles(project, stack, folder, this.#env);
  }

  static async open(project: Project, options: StackOptions): Promise<EmbeddedStack> {
    requireNodeRuntime(project);
    const env = options.env ?? process.env;
    const backend = await chooseBackend(project, env);
    const folder = backendFolder(backend, project);
    await requireBackendFolder(backend, project);
    const stack =
      options.stack ??
      env.PULUMI_STACK ??
      onlyStack(project.name, await FileBackend.stacks(folder, project.name));
    return new EmbeddedStack(project, ownName(project, stack), folder, options);
  }

  async preview(options: PreviewOptions = {}): Promise<Plan> {
    const settings = await this.#settings("preview", options, options.create === false ? "error" : "create");
    return (await dryRun(settings, options)).plan;
  }

  async up(options: UpOptions = {}): Promise<Result> {
    const { held = false, skipPreview = false, create = true, prepare, ...deploying } = options;
    const ifMissing = create ? (skipPreview ? "create" : "plan") : "error";
    const settings = await this.#settings("up", options, ifMissing);
    const deploy =
      (of: RunSettings, plan?: HeldPlan) =>
      (pass: Pass): Promise<PassResult> =>
        deployPass(of, pass, false, { ...deploying, held: plan });
    const heldPlan = (plan: Plan) => (held ? new HeldPlan(plan) : undefined);
    const environment = async () => ({ ...settings.env, ...(await prepare?.()) });
    if (settings.isMissing) {
      // The stack is not locked, because nothing is written before the confirmation, and a lock would be a file in the
      // backend.
      const { plan } = await dryRun(settings, deploying);
      await requireConfirmation(options, plan);
      const env = await environment();
      const { started } = settings;
      const created = { ...(await this.#settings("up", options, "create")), env, started };
      // A different process has created the stack in the meantime, so the plan is outdated.
      if (!created.createdStack) return this.up(options);
      return lockedRun(created, "update", async () => deploy(created, heldPlan(plan)));
    }
    return lockedRun(settings, "update", async () => {
      if (skipPreview) return deploy(settings);
      const { plan, pass } = await dryRun(settings, deploying);
      const { changed, earlierPending } = pass.snapshot;
      const isEmpty = !hasChanges(plan) && !changed && earlierPending.length === 0;
      if (held || !isEmpty) await requireConfirmation(options, plan);
      if (!isEmpty) return deploy({ ...settings, env: await environment() }, heldPlan(plan));
      pass.log.diagnostic(NOTHING_TO_DO);
      return { ...plan, planned: false };
    });
  }

  async refresh(options: RefreshRunOptions = {}): Promise<Result> {
    const settings = await this.#settings("refresh", options, "error");
    return lockedRun(settings, "refresh", async () => {
      const work = refreshing(settings, options);
      if (options.confirm) await requireConfirmation(options, (await planned(settings, work)).plan);
      return work;
    });
  }

  async destroy(options: DestroyOptions = {}): Promise<Result> {
    const settings = await this.#settings("destroy", options, "error");
    return lockedRun(settings, "destroy", async () => {
      const { plan } = await planned(settings, destroying(settings, options, true));
      await requireConfirmation(options, plan);
      return destroying(settings, options, false);
    });
  }

  async drift(options: TargetOptions = {}): Promise<Result> {
    const settings = await this.#settings("drift", options, "error");
    return (await planned(settings, refreshing(settings, options))).plan;
  }

  config(): Promise<ReadonlyMap<string, string>> {
    return this.#files.config();
  }

  setConfig(key: string, text: string): Promise<void> {
    return this.#files.setConfig(key, text);
  }

  async resources(): Promise<readonly StateResource[]> {
    return ((await this.#files.backend.read())?.resources ?? []) as unknown as StateResource[];
  }

  async encrypt(text: string): Promise<string> {
    return (await this.#files.crypter()).encrypt(text);
  }

  async decrypt(encrypted: string): Promise<string> {
    return (await this.#files.crypter()).decrypt(encrypted);
  }

  async #settings(command: Command, options: TargetOptions, ifMissing: IfMissing): Promise<RunSettings> {
    const started = Date.now();
    checkTargetOptions(options);
    const opened = await this.#files.open(ifMissing);
    const { parallel = 16, onEvent = () => {}, signal } = this.#options;
    return {
      ...opened,
      command,
      project: this.#project,
      stack: this.stack,
      backend: this.#files.backend,
      env: this.#env,
      parallel,
      emit: onEvent,
      signal,
      started,
    };
  }
}

function dryRun(settings: RunSettings, options: PreviewOptions): Promise<{ plan: Plan; pass: Pass }> {
  settings.emit({ kind: "phase", phase: "preview" });
  return planned(settings, (pass) => deployPass(settings, pass, true, options));
}

/** Runs a pass that changes neither objects nor the state, such as a preview. Returns the plan of the pass. */
async function planned(
  settings: RunSettings,
  work: (pass: Pass) => Promise<PassResult>,
): Promise<{ plan: Plan; pass: Pass }> {
  const pass = await openPass(settings);
  return { plan: conclude(settings, pass, await work(pass), true), pass };
}

const refreshing =
  (settings: RunSettings, options: RefreshRunOptions) =>
  async (pass: Pass): Promise<PassResult> => {
    requireTargets(pass, options);
    if (options.clearPendingCreates) pass.snapshot.settle(() => true);
    const steps = await refreshPass(settings, pass, options);
    return { steps, outputs: stackOutputs(pass.snapshot) };
  };

const destroying =
  (settings: RunSettings, options: DestroyOptions, dryRun: boolean) =>
  async (pass: Pass): Promise<PassResult> => {
    requireTargets(pass, options);
    if (options.refresh && !dryRun) await refreshPass(settings, pass, options);
    if (!pass.stop.reason) await deletePass(settings, pass, dryRun, options);
    return { steps: pass.log.steps, outputs: {} };
  };

/**
 * Runs a function that changes a stack. Locks the stack, and records each step in the journal. Writes the state at the
 * end, even if the function fails.
 * @param prepare returns the function to run, or the result if there is nothing to do
 * @throws LockedError; BackendError if the state cannot be written; the errors of `prepare`, of the function and of
 *   `conclude`
 */
async function lockedRun(
  settings: RunSettings,
  kind: HistoryEntry["kind"],
  prepare: () => Promise<((pass: Pass) => Promise<PassResult>) | Result>,
): Promise<Result> {
  const { backend, emit } = settings;
  const lock = await takeLock(backend.lockFolder);
  try {
    const work = await prepare();
    if (typeof work !== "function") return work;
    await settings.addSalt();
    const pass = await openPass(settings);
    emit({ kind: "phase", phase: kind });
    const journal = await Journal.create(backend.journalFile, pass.base);
    let journalFailure: string | undefined;
    pass.snapshot.useJournal(journal, ({ message }) => {
      journalFailure ??= `${message}. The run started no more steps; the state contains all finished steps.`;
      pass.stop.stop("failed");
    });
    const startTime = seconds();
    let passResult: PassResult | undefined;
    try {
      passResult = await work(pass);
    } finally {
      await pass.stop.settled();
      await save(settings, pass, journal);
      const ok = passResult !== undefined && !pass.stop.reason && passResult.programFailed === undefined;
      const counts = Object.entries(summarize(passResult?.steps ?? [])).filter(([, count]) => count > 0);
      const result = ok ? "succeeded" : "failed";
      await record(settings, pass, { kind, startTime, result, resourceChanges: Object.fromEntries(counts) });
    }
    return conclude(settings, pass, journalFailure ? { ...passResult, failed: journalFailure } : passResult);
  } finally {
    await lock.release();
  }
}

/** Writes the state. If the state cannot be written, the journal remains for the next run. */
async function save(
  { backend, crypter }: RunSettings,
  { snapshot, metadata }: Pass,
  journal: Journal,
): Promise<void> {
  const { text, hash } = backend.render({ salt: crypter.saltText, metadata, ...snapshot.stored() });
  // Ignores a failure to write the "commit" line. The next run needs this line only if this run is killed after it has
  // written the state and before it has removed the journal.
  await journal.append({ line: "commit", hash }).catch(() => {});
  await journal.close();
  try {
    await backend.write(text);
  } catch (error) {
    const unsaved = snapshot.unsaved.map(({ urn, id }) => `\n  ${urn} (${id ?? "no id"})`);
    throw new BackendError(
      `The state could not be written (${(error as Error).message}). The finished steps are in ${backend.journalFile}, ` +
        "and the next command on this stack merges them." +
        (unsaved.length > 0 ? ` The journal does not contain the steps of:${unsaved.join("")}` : ""),
    );
  }
  await removeIfThere(backend.journalFile);
}

/** Adds the run to the history of the stack. Reports a warning if the history cannot be written. */
async function record(
  { backend, config }: RunSettings,
  { log }: Pass,
  entry: Pick<HistoryEntry, "kind" | "startTime" | "result" | "resourceChanges">,
): Promise<void> {
  await backend.record({ ...entry, endTime: seconds(), config: config.raw }).catch(({ message }: Error) => {
    log.diagnostic({
      severity: "warning",
      message: `The run could not be added to the stack's history: ${message}`,
    });
  });
}

const seconds = () => Math.floor(Date.now() / 1000);
