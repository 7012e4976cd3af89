import { BackendError, DeclinedError } from "../errors.ts";
import {
  type Command,
  hasChanges,
  NOTHING_TO_DO,
  type Plan,
  type Result,
  type Step,
  summarise,
} from "../model.ts";
import type { Confirmable, DestroyOptions, PreviewOptions, RefreshRunOptions, UpOptions } from "../stack.ts";
import type { HistoryEntry } from "../state/fileBackend.ts";
import { Journal } from "../state/journal.ts";
import { takeLock } from "../state/stackLock.ts";
import type { TargetOptions } from "../targets.ts";
import { HeldPlan } from "./deploy/heldPlan.ts";
import { conclude, type Outcome, openPass, type Pass, type RunSettings } from "./pass.ts";
import { deletePass, deployPass, refreshPass, requireTargets, settlePass } from "./passes.ts";
import { stackOutputs } from "./runOutcome.ts";

/** One run of one command on a stack. */
export class EmbeddedRun {
  readonly #settings: RunSettings;

  constructor(settings: RunSettings) {
    this.#settings = settings;
  }

  async preview(options: PreviewOptions): Promise<Plan> {
    return (await this.#dryRun("preview", options)).plan;
  }

  async up(options: UpOptions): Promise<Result> {
    const { held: isHeld = false, skipPreview = false, ...deploying } = options;
    const deploy =
      (held?: HeldPlan) =>
      async (pass: Pass): Promise<Outcome> => {
        const steps = await this.#read(pass, options);
        if (pass.stop.reason) return { steps, outputs: {} };
        return deployPass(this.#settings, pass, false, { ...deploying, ...(held && { held }) });
      };
    return this.#locked("update", async () => {
      if (skipPreview) return deploy();
      const { plan, pass } = await this.#dryRun("up", deploying);
      const { changed, earlierPending } = pass.snapshot;
      const isEmpty = !hasChanges(plan) && !changed && earlierPending.length === 0;
      if (isHeld || !isEmpty) await this.#confirm(options, plan);
      if (!isEmpty) return deploy(isHeld ? new HeldPlan(plan) : undefined);
      pass.log.diagnostic(NOTHING_TO_DO);
      return { ...plan, planned: false };
    });
  }

  async refresh(options: RefreshRunOptions): Promise<Result> {
    return this.#locked("refresh", async () => {
      if (options.confirm) await this.#confirm(options, await this.#readOnly("refresh", options));
      return async (pass) => {
        requireTargets(pass, options);
        if (options.clearPendingCreates) pass.snapshot.settle(() => true);
        const steps = await refreshPass(this.#settings, pass, options);
        return { steps, outputs: stackOutputs(pass.snapshot) };
      };
    });
  }

  async destroy(options: DestroyOptions): Promise<Result> {
    return this.#locked("destroy", async () => {
      await this.#confirm(options, await this.#destroyPlan(options));
      return async (pass) => {
        if (options.refresh) await refreshPass(this.#settings, pass, options);
        if (!pass.stop.reason) await deletePass(this.#settings, pass, false, options);
        return { steps: pass.log.steps, outputs: {} };
      };
    });
  }

  async drift(options: TargetOptions): Promise<Result> {
    return this.#readOnly("drift", options);
  }

  async #confirm({ confirm }: Confirmable, plan: Plan): Promise<void> {
    if (confirm && !(await confirm(plan))) throw new DeclinedError();
  }

  /** A run that changes nothing: neither state nor objects. */
  async #dryRun(command: Command, options: PreviewOptions): Promise<{ plan: Plan; pass: Pass }> {
    this.#settings.emit({ kind: "phase", phase: "preview" });
    const pass = await openPass(this.#settings);
    const steps = await this.#read(pass, options);
    const outcome = pass.stop.reason
      ? { steps, outputs: {} }
      : await deployPass(this.#settings, pass, true, options);
    return { plan: conclude(this.#settings, command, pass, outcome, true), pass };
  }

  /** Reads the real objects where that is asked for, else those alone of which nobody knows what became of them. */
  async #read(pass: Pass, options: PreviewOptions): Promise<Step[]> {
    if (options.refresh) return refreshPass(this.#settings, pass, options);
    await settlePass(this.#settings, pass, options);
    return [];
  }

  async #readOnly(command: Command, targets: TargetOptions): Promise<Result> {
    const pass = await openPass(this.#settings);
    requireTargets(pass, targets);
    const steps = await refreshPass(this.#settings, pass, targets);
    return conclude(this.#settings, command, pass, { steps, outputs: stackOutputs(pass.snapshot) }, true);
  }

  async #destroyPlan(targets: TargetOptions): Promise<Plan> {
    const pass = await openPass(this.#settings);
    requireTargets(pass, targets);
    await deletePass(this.#settings, pass, true, targets);
    return conclude(this.#settings, "destroy", pass, { steps: pass.log.steps, outputs: {} }, true);
  }

  /**
   * Holds the lock while `prepare` makes a plan and the work it returns is done under a journal; then writes the
   * state, whatever became of the work, and throws where something failed. A result of `prepare` is all there is to do.
   */
  async #locked(
    kind: "update" | "refresh" | "destroy",
    prepare: () => Promise<((pass: Pass) => Promise<Outcome>) | Result>,
  ): Promise<Result> {
    const { backend, emit, command } = this.#settings;
    const lock = await takeLock(backend.lockFolder);
    try {
      const work = await prepare();
      if (typeof work !== "function") return work;
      const pass = await openPass(this.#settings);
      emit({ kind: "phase", phase: kind });
      const journal = await Journal.create(backend.journalFile, pass.base);
      let journalFailure: string | undefined;
      pass.snapshot.useJournal(journal, ({ message }) => {
        journalFailure ??= `${message}. Nothing more was started; the state holds all that was done.`;
        pass.stop.stop("failed");
      });
      const startTime = Math.floor(Date.now() / 1000);
      let outcome: Outcome | undefined;
      try {
        outcome = await work(pass);
      } finally {
        await pass.stop.settled();
        await this.#save(pass, journal);
        const ok = outcome !== undefined && !pass.stop.reason && outcome.programFailed === undefined;
        await this.#record(kind, startTime, ok, pass, outcome?.steps ?? []);
      }
      if (journalFailure) outcome.failed = journalFailure;
      return conclude(this.#settings, command, pass, outcome);
    } finally {
      await lock.release();
    }
  }

  /** Writes the state. Throws BackendError where that fails: the journal is left then, for the next run. */
  async #save({ snapshot, metadata }: Pass, journal: Journal): Promise<void> {
    const { backend, crypter } = this.#settings;
    const { text, hash } = backend.render({ salt: crypter.saltText, metadata, ...snapshot.stored() });
    // A journal that cannot say so is still removed, once the state is written.
    await journal.append({ line: "commit", hash }).catch(() => {});
    await journal.close();
    try {
      await backend.write(text);
    } catch (error) {
      const unsaved = snapshot.unsaved.map(({ urn, id }) => `\n  ${urn} (${id ?? "no id"})`);
      throw new BackendError(
        `The state could not be written (${(error as Error).message}). What was done is in ${backend.journalFile}, ` +
          "and the next command on this stack goes on from there." +
          (unsaved.length > 0 ? ` Not even the journal says what became of:${unsaved.join("")}` : ""),
      );
    }
    await backend.removeJournal();
  }

  /** Adds the run to the history; where that fails, the run is as good. */
  async #record(
    kind: HistoryEntry["kind"],
    startTime: number,
    ok: boolean,
    { log }: Pass,
    steps: Step[],
  ): Promise<void> {
    const resourceChanges = Object.fromEntries(
      Object.entries(summarise(steps)).filter(([, count]) => count > 0),
    );
    const entry: HistoryEntry = {
      kind,
      startTime,
      endTime: Math.floor(Date.now() / 1000),
      result: ok ? "succeeded" : "failed",
      config: this.#settings.config.raw,
      resourceChanges,
    };
    await this.#settings.backend.record(entry).catch(({ message }: Error) => {
      log.diagnostic({ severity: "warning", message: `The history of the stack lacks this run: ${message}` });
    });
  }
}
