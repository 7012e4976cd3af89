import { StackSelectionError } from "../errors.ts";
import { type Command, hasChanges, NOTHING_TO_DO, type Plan, type Result } from "../model.ts";
import { backendFolder, chooseBackend } from "../project/chooseBackend.ts";
import { type Project, requireNodeRuntime } from "../project/project.ts";
import {
  type DestroyOptions,
  onlyStack,
  type PreviewOptions,
  parseStackName,
  type RefreshRunOptions,
  requireConfirmation,
  type Stack,
  type StackOptions,
  type StateResource,
  type UpOptions,
} from "../stack.ts";
import { FileBackend } from "../state/fileBackend.ts";
import { checkTargetOptions, type TargetOptions } from "../targets.ts";
import { HeldPlan } from "./deploy/heldPlan.ts";
import { lockedRun } from "./lockedRun.ts";
import {
  conclude,
  deletePass,
  deployPass,
  type Outcome,
  openPass,
  type Pass,
  type RunSettings,
  refreshPass,
  requireTargets,
  stackOutputs,
} from "./passes.ts";
import { StackFiles } from "./stackFiles.ts";

/** The one organization that the stacks of a file backend have, as for the Pulumi CLI. */
const ORGANIZATION = "organization";

/** The name of a stack of this project in a file backend. @throws StackSelectionError where it can be none */
function ownName({ name: own }: Project, stack: string): string {
  const { organization = ORGANIZATION, project = own, name } = parseStackName(stack);
  if (organization !== ORGANIZATION) {
    throw new StackSelectionError(
      `There is no stack ${stack}: a file backend has no organizations. Name the stack ${name}, or ${ORGANIZATION}/${own}/${name}.`,
    );
  }
  if (project !== own) {
    throw new StackSelectionError(
      `The stack ${stack} is of the project ${project}, and Pulumi.yaml is of ${own}.`,
    );
  }
  return name;
}

/** A stack run by the engine in this package: needs no Pulumi CLI. */
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

  /** Opens a stack. @throws ProjectError, BackendError, StackSelectionError, UnsupportedError */
  static async open(project: Project, options: StackOptions): Promise<EmbeddedStack> {
    requireNodeRuntime(project);
    const env = options.env ?? process.env;
    const folder = backendFolder(await chooseBackend(project, env), project);
    const stack =
      options.stack ??
      env.PULUMI_STACK ??
      onlyStack(project.name, await FileBackend.stacks(folder, project.name));
    return new EmbeddedStack(project, ownName(project, stack), folder, options);
  }

  async preview(options: PreviewOptions = {}): Promise<Plan> {
    const settings = await this.#settings("preview", options);
    return (await dryRun(settings, options)).plan;
  }

  async up(options: UpOptions = {}): Promise<Result> {
    const { held = false, skipPreview = false, ...deploying } = options;
    const settings = await this.#settings("up", options);
    const deploy = (plan?: HeldPlan) => (pass: Pass) =>
      deployPass(settings, pass, false, { ...deploying, held: plan });
    return lockedRun(settings, "update", async () => {
      if (skipPreview) return deploy();
      const { plan, pass } = await dryRun(settings, deploying);
      const { changed, earlierPending } = pass.snapshot;
      const isEmpty = !hasChanges(plan) && !changed && earlierPending.length === 0;
      if (held || !isEmpty) await requireConfirmation(options, plan);
      if (!isEmpty) return deploy(held ? new HeldPlan(plan) : undefined);
      pass.log.diagnostic(NOTHING_TO_DO);
      return { ...plan, planned: false };
    });
  }

  async refresh(options: RefreshRunOptions = {}): Promise<Result> {
    const settings = await this.#settings("refresh", options);
    return lockedRun(settings, "refresh", async () => {
      const work = refreshing(settings, options);
      if (options.confirm) await requireConfirmation(options, (await planned(settings, work)).plan);
      return work;
    });
  }

  async destroy(options: DestroyOptions = {}): Promise<Result> {
    const settings = await this.#settings("destroy", options);
    return lockedRun(settings, "destroy", async () => {
      const { plan } = await planned(settings, destroying(settings, options, true));
      await requireConfirmation(options, plan);
      return destroying(settings, options, false);
    });
  }

  async drift(options: TargetOptions = {}): Promise<Result> {
    const settings = await this.#settings("drift", options);
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

  async #settings(
    command: Command,
    options: TargetOptions & { readonly create?: boolean },
  ): Promise<RunSettings> {
    const started = Date.now();
    checkTargetOptions(options);
    const opened = await this.#files.open({
      create: (command === "preview" || command === "up") && options.create !== false,
      changes: command !== "preview" && command !== "drift",
    });
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

/** The result of work that changes neither the state nor objects. */
async function planned(
  settings: RunSettings,
  work: (pass: Pass) => Promise<Outcome>,
): Promise<{ plan: Plan; pass: Pass }> {
  const pass = await openPass(settings);
  return { plan: conclude(settings, pass, await work(pass), true), pass };
}

const refreshing =
  (settings: RunSettings, options: RefreshRunOptions) =>
  async (pass: Pass): Promise<Outcome> => {
    requireTargets(pass, options);
    if (options.clearPendingCreates) pass.snapshot.settle(() => true);
    const steps = await refreshPass(settings, pass, options);
    return { steps, outputs: stackOutputs(pass.snapshot) };
  };

const destroying =
  (settings: RunSettings, options: DestroyOptions, dryRun: boolean) =>
  async (pass: Pass): Promise<Outcome> => {
    requireTargets(pass, options);
    if (options.refresh && !dryRun) await refreshPass(settings, pass, options);
    if (!pass.stop.reason) await deletePass(settings, pass, dryRun, options);
    return { steps: pass.log.steps, outputs: {} };
  };
