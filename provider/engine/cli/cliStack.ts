import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type EngineEvent as CliEvent,
  Stack as CliHandle,
  ConcurrentUpdateError,
  type LocalWorkspace,
  StackNotFoundError,
} from "@pulumi/pulumi/automation/index.js";
import { OWN_PROVIDER_TYPE, ownTypeName, UrnPatterns, urnType } from "../../urn.ts";
import {
  CancelledError,
  checkTargetOptions,
  DeclinedError,
  EngineError,
  LockedError,
  PassphraseError,
  ProjectError,
  requireConfirmation,
  StackSelectionError,
  UpdateFailedError,
} from "../errors.ts";
import { readIfThere, removeIfThere, writeDurably } from "../files.ts";
import {
  type Command,
  type DestroyOptions,
  failedSteps,
  hasChanges,
  leftObjects,
  NOTHING_TO_DO,
  type Plan,
  type PreviewOptions,
  type RefreshRunOptions,
  type Result,
  reportedSteps,
  type Stack,
  type StackOptions,
  type StateResource,
  summarize,
  type TargetOptions,
  type UpOptions,
} from "../model.ts";
import { onlyStack, type Project, parseStackName, stackFilePath } from "../project.ts";
import { RunLog } from "../runLog.ts";
import type { StoredResource } from "../state/crypter.ts";
import type { StoredDeployment } from "../state/fileBackend.ts";
import { pendingWarning } from "../state/resourceState.ts";
import { isSecret, type Props } from "../value.ts";
import { CliEvents, isNothingToDo, PRINT_ALL, shownOutputs } from "./cliEvents.ts";
import { type CliTarget, decryptByCli, encryptByCli } from "./cliSecrets.ts";
import { type CliWorkspace, type Failure, openWorkspace, stackNames } from "./cliWorkspace.ts";

interface CliRun {
  readonly onEvent: (event: CliEvent) => void;
  readonly parallel: number;
  readonly color: "never";
  readonly signal: AbortSignal | undefined;
}

export class CliStack implements Stack {
  readonly engine = "cli";
  readonly project: string;
  readonly stack: string;
  readonly selector: string;
  readonly #options: StackOptions;
  readonly #workspace: LocalWorkspace;
  readonly #configFolder: string;
  readonly #notes: string[];
  #created = false;
  /** The content of the settings file before this run created the stack; undefined if there was no file. */
  #settingsBefore: string | undefined;
  /**
   * Number of unfinished items that earlier runs left in the state: pending operations, and deposed objects (old
   * objects that a replacement did not delete). Undefined until the state is read.
   */
  #undone: number | undefined;

  private constructor(
    project: Project,
    stack: string,
    { workspace, note }: CliWorkspace,
    options: StackOptions,
  ) {
    this.project = project.name;
    this.stack = parseStackName(stack).name;
    this.selector = stack;
    this.#workspace = workspace;
    this.#configFolder = project.configFolder;
    this.#options = options;
    this.#notes = [note];
  }

  static async open(project: Project, options: StackOptions): Promise<CliStack> {
    const env = options.env ?? process.env;
    const opened = await openWorkspace(project, env);
    const names = () =>
      stackNames(opened.workspace).catch((error: unknown) => {
        throw cliFailure(error, "list the stacks");
      });
    const stack = options.stack ?? env.PULUMI_STACK ?? onlyStack(project.name, await names());
    return new CliStack(project, stack, opened, options);
  }

  async preview(options: PreviewOptions = {}): Promise<Plan> {
    const more = await this.#updateOptions(options);
    const { values = false, create = true } = options;
    return this.#run("preview", create, (handle, run) => handle.preview({ ...run, ...more }), { values });
  }

  async up(options: UpOptions = {}): Promise<Result> {
    const { skipPreview = false, held = false, create = true, values = false, prepare } = options;
    const more = await this.#updateOptions(options);
    const update = (limits: CliUpdate): Promise<Result> =>
      this.#run("up", create, (handle, run) => handle.up({ ...run, ...limits }));
    if (skipPreview) return update(more);
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-"));
    try {
      // In the plan file, secrets are encrypted as in the state. If a program deviates from the plan file, the CLI
      // stops the program.
      const file = join(folder, "plan.json");
      let isEmpty = false;
      // As in the embedded engine, an error in the preview prevents all writes.
      const preview = async (handle: CliHandle, run: CliRun): Promise<void> => {
        const { workspace } = handle;
        const { envVars } = workspace;
        workspace.envVars = { ...envVars, ...PRINT_ALL };
        const { stdout } = await handle.preview({ ...run, ...more, plan: file }).finally(() => {
          workspace.envVars = envVars;
        });
        // The CLI's preview reports neither pending operations nor deposed objects. So their number in the state is
        // checked too.
        isEmpty = this.#undone === 0 && isNothingToDo(stdout, await readFile(file, "utf8"));
      };
      const plan = await this.#run("preview", create, preview, { values });
      if (held || !isEmpty) await this.#confirmed(options, plan);
      if (!isEmpty) {
        Object.assign(this.#workspace.envVars, await prepare?.());
        return await update(held ? { ...more, plan: file } : more);
      }
      this.#options.onEvent?.({ kind: "diagnostic", diagnostic: NOTHING_TO_DO });
      return { ...plan, command: "up", planned: false, diagnostics: [...plan.diagnostics, NOTHING_TO_DO] };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async refresh(options: RefreshRunOptions = {}): Promise<Result> {
    const { clearPendingCreates = false } = options;
    const more = { ...targetOptions(options), clearPendingCreates };
    if (options.confirm) await requireConfirmation(options, await this.drift(options));
    return this.#run("refresh", false, (handle, run) => handle.refresh({ ...run, ...more }));
  }

  async destroy(options: DestroyOptions = {}): Promise<Result> {
    const more = { ...targetOptions(options), refresh: options.refresh ?? false };
    // A preview always runs first. Otherwise, the run could delete other resources before it reaches a protected
    // resource.
    const preview = (handle: CliHandle, run: CliRun) => handle.previewDestroy({ ...run, ...more });
    await requireConfirmation(options, await this.#run("destroy", false, preview, { planned: true }));
    return this.#run("destroy", false, (handle, run) => handle.destroy({ ...run, ...more }));
  }

  async drift(options: TargetOptions = {}): Promise<Result> {
    const more = targetOptions(options);
    return this.#run("drift", false, (handle, run) => handle.previewRefresh({ ...run, ...more }));
  }

  async config(): Promise<ReadonlyMap<string, string>> {
    const { handle } = await this.#handle(false);
    const config = await handle.getAllConfig().catch((error: unknown) => {
      throw cliFailure(error, "read the stack's configuration");
    });
    return new Map(Object.entries(config).map(([key, { value }]) => [key, value]));
  }

  async setConfig(key: string, text: string): Promise<void> {
    const { handle } = await this.#handle(true);
    await handle.setConfig(key, { value: text });
  }

  async resources(): Promise<readonly StateResource[]> {
    const found = await this.#handle(false).catch((error: unknown) => {
      if (error instanceof StackSelectionError) return undefined;
      throw error;
    });
    return (await found?.handle.exportStack())?.deployment?.resources ?? [];
  }

  encrypt(text: string): Promise<string> {
    return encryptByCli(this.#target(), text);
  }

  decrypt(encrypted: string): Promise<string> {
    return decryptByCli(this.#target(), encrypted);
  }

  async #updateOptions(options: PreviewOptions): Promise<CliUpdate> {
    const { refresh = false, replace = [] } = options;
    const update = { ...targetOptions(options), refresh, replace: [...replace] };
    if (replace.length === 0) return update;
    const urns = (await this.resources()).map(({ urn }) => urn);
    const patterns = new UrnPatterns(replace);
    const own = new Set(urns.filter((urn) => ownTypeName(urnType(urn)) !== undefined));
    // If a URN is in the CLI's option `replace`, the CLI does not call the provider's `diff` for the resource. The
    // provider of this package needs the `diff` call to receive the old object. So the option `replace` omits the
    // resources of this package. For these resources, the variable `GATEHOUSE_REPLACE` makes the provider request the
    // replacement.
    this.#workspace.envVars.GATEHOUSE_REPLACE = JSON.stringify(replace);
    const others = [...patterns.urns, ...urns.filter((urn) => patterns.has(urn))].filter(
      (urn) => !own.has(urn),
    );
    return { ...update, replace: [...new Set(others)] };
  }

  #target(): CliTarget {
    const { pulumiCommand, envVars, workDir } = this.#workspace;
    return {
      command: pulumiCommand.command,
      env: { ...process.env, ...envVars },
      projectFolder: workDir,
      stack: this.selector,
      stackFile: stackFilePath({ configFolder: this.#configFolder }, this.stack),
    };
  }

  /**
   * Requires the confirmation of a plan. The Pulumi CLI previews only existing stacks, so the run may have created the
   * stack for its preview. If the user declines, removes this stack again.
   * @throws DeclinedError if `confirm` returns false
   */
  async #confirmed(options: UpOptions, plan: Plan): Promise<void> {
    try {
      await requireConfirmation(options, plan);
    } catch (error) {
      if (error instanceof DeclinedError && this.#created) await this.#removeCreated();
      throw error;
    }
  }

  /** Removes the empty stack that this run created, and restores its settings file. */
  async #removeCreated(): Promise<void> {
    const path = stackFilePath({ configFolder: this.#configFolder }, this.stack);
    await this.#workspace.removeStack(this.selector).catch((error: unknown) => {
      throw cliFailure(error, "remove the stack that this run created for the preview");
    });
    if (this.#settingsBefore === undefined) await removeIfThere(path);
    else await writeDurably(path, this.#settingsBefore);
  }

  async #run(
    command: Command,
    create: boolean,
    work: (handle: CliHandle, run: CliRun) => Promise<unknown>,
    reporting: { readonly planned?: boolean; readonly values?: boolean } = {},
  ): Promise<Result> {
    const { planned = command === "preview" || command === "drift", values = false } = reporting;
    const started = Date.now();
    const log = new RunLog(this.#options.onEvent ?? (() => {}));
    for (const message of this.#notes.splice(0)) log.diagnostic({ severity: "info", message });
    const { handle, created } = await this.#handle(create);
    this.#created ||= created;
    if (created) log.diagnostic({ severity: "info", message: `Created the stack ${this.selector}.` });
    if (!created) await this.#inspectState(handle, log);
    const events = new CliEvents(log, { command, planned, values });
    const { signal, parallel = 16 } = this.#options;
    log.emit({ kind: "phase", phase: planned && command === "destroy" ? "preview" : PHASES[command] });
    let failure: unknown;
    try {
      await work(handle, { onEvent: (event) => events.take(event), parallel, color: "never", signal });
    } catch (error) {
      failure = error;
    }
    const steps = reportedSteps(events.steps(failure === undefined));
    const result: Result = {
      engine: "cli",
      command,
      project: this.project,
      stack: this.stack,
      ok: failure === undefined,
      planned,
      createdStack: this.#created,
      steps,
      summary: summarize(steps),
      outputs: command === "destroy" ? {} : (events.outputs ?? shownOutputs(await handle.outputs())),
      diagnostics: log.diagnostics,
      ...leftObjects(log.diagnostics),
      durationMs: Date.now() - started,
    };
    if (failure === undefined) return result;
    throw runFailure(failure, result, log, signal?.aborted === true);
  }

  /**
   * Inspects the state of an existing stack. Further calls have no effect. Reports the pending operations of an earlier
   * run. The CLI itself reports them only after the preview, which is too late for the user to inspect them. If a
   * provider instance in the state has a credential, makes the CLI use the credential from the program instead. The
   * credential in the program may be newer.
   */
  async #inspectState(handle: CliHandle, log: RunLog): Promise<void> {
    if (this.#undone !== undefined) return;
    // Ignores errors here. If the CLI cannot read the state, the following run reports the error.
    const exported = await handle.exportStack().catch(() => undefined);
    if (!exported) return;
    const { deployment = {} } = exported as { deployment?: StoredDeployment };
    const { pending_operations: pending = [], resources = [] } = deployment;
    this.#undone = pending.length + resources.filter((resource) => resource.delete).length;
    if (resources.some(hasOwnCredential)) this.#workspace.envVars.PULUMI_RUN_PROGRAM ??= "true";
    for (const { type, resource } of pending) log.diagnostic(pendingWarning(type, String(resource.urn)));
  }

  async #handle(create: boolean): Promise<{ handle: CliHandle; created: boolean }> {
    try {
      return { handle: await CliHandle.select(this.selector, this.#workspace), created: false };
    } catch (error) {
      if (!(error instanceof StackNotFoundError)) throw cliFailure(error, "open the stack");
      if (!create) {
        const known = await stackNames(this.#workspace).catch(() => []);
        throw StackSelectionError.missing(this.project, this.selector, known);
      }
      this.#settingsBefore = await readIfThere(
        stackFilePath({ configFolder: this.#configFolder }, this.stack),
        ProjectError,
      );
      return { handle: await CliHandle.create(this.selector, this.#workspace), created: true };
    }
  }
}

/** Returns true if the resource is an instance of this package's provider with a credential in its inputs. */
const hasOwnCredential = ({ urn, inputs = {} }: StoredResource): boolean =>
  urnType(String(urn)) === OWN_PROVIDER_TYPE && Object.values(inputs as Props).some(isSecret);

const PHASES = {
  preview: "preview",
  up: "update",
  refresh: "refresh",
  drift: "refresh",
  destroy: "destroy",
} as const;

interface CliUpdate extends ReturnType<typeof targetOptions> {
  readonly refresh: boolean;
  readonly replace: string[];
  readonly plan?: string;
}

/**
 * Returns the options of the Automation API that limit a run to the selected resources.
 * @throws EngineError (`usage`) if the options contradict each other
 */
function targetOptions(options: TargetOptions) {
  checkTargetOptions(options);
  const { target = [], exclude = [], targetDependents = false, excludeDependents = false } = options;
  return { target: [...target], exclude: [...exclude], targetDependents, excludeDependents };
}

/**
 * Converts a failure of the Automation API to the error that the command throws. The error contains the result of the
 * run so far.
 */
function runFailure(failure: unknown, result: Result, log: RunLog, isAborted: boolean): EngineError {
  const { command, steps, diagnostics } = result;
  if (isAborted) return new CancelledError(result);
  if (failure instanceof ConcurrentUpdateError || /currently locked by/.test(String(failure))) {
    return lockedError(String(failure));
  }
  const isReported = diagnostics.some((diagnostic) => diagnostic.severity === "error");
  if (!isReported && !hasChanges(result))
    return new EngineError("pulumi_cli", log.mask(String((failure as Error).message)));
  const verb = command === "drift" ? "refresh" : command;
  const isExplained = diagnostics.some(({ severity, urn }) => severity === "error" && urn !== undefined);
  return new UpdateFailedError(failedSteps(steps) ?? `pulumi ${verb} failed.`, result, isExplained);
}

/**
 * Creates a LockedError from the CLI's output. The output has a line for each lock of a file backend, and may repeat
 * these lines.
 */
function lockedError(text: string): LockedError {
  const locks = [...text.matchAll(/^ +(?:file:\/\/)?([^\s?]+)\S*: created by (.+) at (\S+)$/gm)];
  const holders = locks.map(([, path, who, since]) => `${path}: ${who} since ${since}`);
  return LockedError.heldBy([...new Set(holders)]);
}

/**
 * Converts the failure of a CLI command to an EngineError. The error quotes only the error lines of the CLI's output,
 * since other lines may contain configuration values. Returns errors with other causes unchanged.
 */
function cliFailure(error: unknown, action: string): unknown {
  const { commandResult } = error as Failure;
  if (!commandResult) return error;
  const { stderr } = commandResult;
  if (/incorrect passphrase/.test(stderr)) return PassphraseError.wrong();
  const errors = stderr.split("\n").filter((line) => line.startsWith("error: "));
  return new EngineError("pulumi_cli", [`The Pulumi CLI could not ${action}.`, ...errors].join(" "));
}
