import { type Connection, createConnection } from "./connection.ts";
import type { Crypter } from "./crypter.ts";
import { deleteAll } from "./deletions.ts";
import { Deployment } from "./deployment.ts";
import type { DynamicProvider } from "./dynamicProvider.ts";
import {
  CancelledError,
  DeclinedError,
  ProgramError,
  UnsupportedError,
  UpdateFailedError,
} from "./errors.ts";
import { shownProps } from "./fieldDiff.ts";
import type { FileBackend } from "./fileBackend.ts";
import { Journal } from "./journal.ts";
import { Limiter } from "./limiter.ts";
import {
  type Command,
  type Diagnostic,
  type EngineEvent,
  type Plan,
  type Result,
  type Step,
  summarise,
} from "./model.ts";
import { startProgram } from "./programProcess.ts";
import type { Project } from "./project.ts";
import { refreshState } from "./refreshState.ts";
import { refuseForeignResources } from "./refuseForeignResources.ts";
import { RunLog } from "./runLog.ts";
import { programFailure, stackOutputs, unique } from "./runOutcome.ts";
import { Snapshot } from "./snapshot.ts";
import type { RefreshRunOptions, UpOptions } from "./stack.ts";
import { configProps, type StackConfig } from "./stackConfig.ts";
import { takeLock } from "./stackLock.ts";
import { StateCodec } from "./stateCodec.ts";
import { StopSwitch } from "./stopSwitch.ts";
import type { Props } from "./value.ts";

/** What one run is given. */
export type RunSettings = {
  command: Command;
  project: Project;
  stack: string;
  backend: FileBackend;
  crypter: Crypter;
  config: StackConfig;
  env: NodeJS.ProcessEnv;
  parallel: number;
  emit: (event: EngineEvent) => void;
  signal?: AbortSignal;
  createdStack: boolean;
  notes: string[];
  /** When the command was given, in milliseconds. */
  started: number;
};

type Pass = { log: RunLog; stop: StopSwitch; snapshot: Snapshot };
type Outcome = { steps: Step[]; outputs: Props; programFailed?: string };

/** One run of one command on a stack. */
export class EmbeddedRun {
  readonly #settings: RunSettings;

  constructor(settings: RunSettings) {
    this.#settings = settings;
  }

  async preview(refresh: boolean): Promise<Plan> {
    return this.#dryRun("preview", refresh);
  }

  async up({ refresh = false, confirm }: UpOptions): Promise<Result> {
    return this.#locked("update", async () => {
      const plan = await this.#dryRun("up", refresh);
      if (confirm && !(await confirm(plan))) throw new DeclinedError();
      return async (pass) => {
        const refreshed = refresh ? await this.#refreshPass(pass) : [];
        if (pass.stop.reason) return { steps: refreshed, outputs: {} };
        return this.#deploy(pass, false);
      };
    });
  }

  async refresh({ clearPendingCreates = false, confirm }: RefreshRunOptions): Promise<Result> {
    return this.#locked("refresh", async () => {
      if (confirm && !(await confirm(await this.#readOnly("refresh")))) throw new DeclinedError();
      return async (pass) => {
        if (clearPendingCreates) pass.snapshot.settle(() => true);
        return { steps: await this.#refreshPass(pass), outputs: stackOutputs(pass.snapshot) };
      };
    });
  }

  async destroy({ refresh = false, confirm }: UpOptions): Promise<Result> {
    return this.#locked("destroy", async () => {
      const plan = await this.#destroyPlan();
      if (confirm && !(await confirm(plan))) throw new DeclinedError();
      return async (pass) => {
        if (refresh) await this.#refreshPass(pass);
        if (!pass.stop.reason) await this.#deletePass(pass, false);
        return { steps: pass.log.steps, outputs: {} };
      };
    });
  }

  async drift(): Promise<Result> {
    return this.#readOnly("drift");
  }

  /** A run that changes nothing: neither state nor objects. */
  async #dryRun(command: Command, refresh: boolean): Promise<Plan> {
    this.#settings.emit({ kind: "phase", phase: "preview" });
    const pass = await this.#pass();
    const steps = refresh ? await this.#refreshPass(pass) : [];
    const outcome = pass.stop.reason ? { steps, outputs: {} } : await this.#deploy(pass, true);
    return this.#conclude(command, pass, outcome, true);
  }

  async #readOnly(command: Command): Promise<Result> {
    const pass = await this.#pass();
    const steps = await this.#refreshPass(pass);
    return this.#conclude(command, pass, { steps, outputs: stackOutputs(pass.snapshot) }, true);
  }

  async #destroyPlan(): Promise<Plan> {
    const pass = await this.#pass();
    await this.#deletePass(pass, true);
    return this.#conclude("destroy", pass, { steps: pass.log.steps, outputs: {} }, true);
  }

  async #pass(): Promise<Pass & { metadata: unknown; base: string }> {
    const { backend, crypter, config, emit, notes, signal } = this.#settings;
    const checkpoint = await backend.read();
    const resources = checkpoint?.resources ?? [];
    refuseForeignResources(resources);
    const snapshot = new Snapshot(resources, checkpoint?.pendingOperations ?? [], new StateCodec(crypter));
    const log = new RunLog(emit);
    log.hide(configProps(config));
    for (const { state } of snapshot.entries()) {
      log.hide(state.inputs);
      log.hide(state.outputs);
    }
    for (const message of notes.splice(0)) log.diagnostic({ severity: "info", message });
    for (const { type, resource } of snapshot.earlierPending) {
      const message = `An earlier run was stopped while ${type} it: look whether that was done (refresh helps).`;
      log.diagnostic({ severity: "warning", message, urn: resource.urn });
    }
    const stop = new StopSwitch();
    if (signal?.aborted) stop.stop("cancelled");
    signal?.addEventListener("abort", () => stop.stop("cancelled"), { once: true });
    return { log, stop, snapshot, metadata: checkpoint?.metadata ?? {}, base: checkpoint?.hash ?? "" };
  }

  /**
   * Holds the lock while `prepare` makes a plan and the work it returns is done under a journal; then writes the
   * state, whatever became of the work, and throws where something failed.
   */
  async #locked(
    kind: "update" | "refresh" | "destroy",
    prepare: () => Promise<(pass: Pass) => Promise<Outcome>>,
  ): Promise<Result> {
    const { backend, crypter, emit, command } = this.#settings;
    const lock = await takeLock(backend.lockFolder);
    try {
      const work = await prepare();
      const pass = await this.#pass();
      emit({ kind: "phase", phase: kind });
      const journal = await Journal.create(backend.journalFile, pass.base);
      pass.snapshot.useJournal(journal);
      const startTime = Math.floor(Date.now() / 1000);
      let outcome: Outcome | undefined;
      try {
        outcome = await work(pass);
      } finally {
        await pass.stop.settled();
        const rest = { salt: crypter.saltText, metadata: pass.metadata };
        const { text, hash } = backend.render({ ...rest, ...pass.snapshot.stored() });
        await journal.append({ line: "commit", hash });
        await journal.close();
        await backend.write(text);
        await backend.removeJournal();
        const ok = outcome !== undefined && !pass.stop.reason && outcome.programFailed === undefined;
        const resourceChanges = Object.fromEntries(
          Object.entries(summarise(outcome?.steps ?? [])).filter(([, count]) => count > 0),
        );
        await backend.record({
          kind,
          startTime,
          endTime: Math.floor(Date.now() / 1000),
          result: ok ? "succeeded" : "failed",
          config: this.#settings.config.raw,
          resourceChanges,
        });
      }
      return this.#conclude(command, pass, outcome);
    } finally {
      await lock.release();
    }
  }

  async #refreshPass(pass: Pass): Promise<Step[]> {
    this.#settings.emit({ kind: "phase", phase: "refresh" });
    const connection = await createConnection(this.#settings, pass.log);
    try {
      const provider = await connection.provider;
      return await refreshState({ ...pass, provider, parallel: this.#settings.parallel });
    } finally {
      await connection.close();
    }
  }

  async #deletePass(pass: Pass, dryRun: boolean): Promise<void> {
    const { log, stop, snapshot } = pass;
    const limiter = new Limiter(this.#settings.parallel);
    const shared = { snapshot, log, stop, limiter, dryRun, deleted: new Set<string>() };
    let connection: Promise<Connection> | undefined;
    const provider = async (): Promise<DynamicProvider> => {
      connection ??= createConnection(this.#settings, log);
      return (await connection).provider;
    };
    try {
      await deleteAll({ ...shared, provider }, snapshot.entries(), new Map());
    } finally {
      await stop.settled();
      await (await connection)?.close();
    }
  }

  async #deploy(pass: Pass, dryRun: boolean): Promise<Outcome> {
    const { project, stack, config, env, parallel } = this.#settings;
    const { log, stop } = pass;
    let deployment: Deployment | undefined;
    const connection = await createConnection(this.#settings, log, (provider) => {
      const providerInputs = configProps(config);
      deployment = new Deployment({
        ...pass,
        stack,
        project: project.name,
        dryRun,
        parallel,
        provider,
        providerInputs,
      });
      return deployment;
    });
    const running = deployment as Deployment | undefined;
    if (!running) throw new Error("the deployment was not set up");
    const outcome: Outcome = { steps: log.steps, outputs: {} };
    try {
      const onDiagnostic = (diagnostic: Diagnostic): void => log.diagnostic(diagnostic);
      const { address } = connection;
      const program = startProgram({ project, stack, config, env, address, dryRun, parallel, onDiagnostic });
      try {
        // Without its provider the program could not register anything.
        await connection.provider;
        const code = await Promise.race([program.exited, stop.stopped.then(() => undefined)]);
        await stop.settled();
        if (code === 0) await running.finished();
        else if (code !== undefined) outcome.programFailed = programFailure(code, log);
      } finally {
        await program.stop();
      }
      if (running.unsupportedUses.length > 0) throw new UnsupportedError(unique(running.unsupportedUses));
    } finally {
      await stop.settled();
      await connection.close();
    }
    outcome.outputs = running.stackOutputs();
    return outcome;
  }

  #conclude(command: Command, pass: Pass, outcome: Outcome, planned = false): Result {
    const { project, stack, createdStack, started } = this.#settings;
    const { log, stop } = pass;
    const failed = outcome.steps.some((step) => step.error !== undefined);
    const result: Result = {
      engine: "embedded",
      command,
      project: project.name,
      stack,
      ok: !failed && !stop.reason && outcome.programFailed === undefined,
      planned,
      createdStack,
      steps: outcome.steps,
      summary: summarise(outcome.steps),
      outputs: shownProps(outcome.outputs),
      diagnostics: log.diagnostics,
      durationMs: Date.now() - started,
    };
    if (stop.reason === "cancelled") throw new CancelledError(result);
    if (outcome.programFailed !== undefined) throw new ProgramError(outcome.programFailed, result);
    if (!result.ok) {
      const count = outcome.steps.filter((step) => step.error !== undefined).length;
      throw new UpdateFailedError(`${count} resource${count === 1 ? "" : "s"} failed.`, result);
    }
    return result;
  }
}
