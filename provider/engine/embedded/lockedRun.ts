import { BackendError } from "../errors.ts";
import { type Result, summarise } from "../model.ts";
import type { HistoryEntry } from "../state/fileBackend.ts";
import { Journal } from "../state/journal.ts";
import { takeLock } from "../state/stackLock.ts";
import { conclude, type Outcome, openPass, type Pass, type RunSettings } from "./passes.ts";

/**
 * Does work that changes a stack: holds its lock, journals the work, then writes the state, even where the work failed.
 * @param prepare makes a plan under the lock and gives the work; a result instead says that there is no work
 * @throws LockedError; BackendError where the state cannot be written; the errors of `prepare`, the work and `conclude`
 */
export async function lockedRun(
  settings: RunSettings,
  kind: HistoryEntry["kind"],
  prepare: () => Promise<((pass: Pass) => Promise<Outcome>) | Result>,
): Promise<Result> {
  const { backend, emit } = settings;
  const lock = await takeLock(backend.lockFolder);
  try {
    const work = await prepare();
    if (typeof work !== "function") return work;
    const pass = await openPass(settings);
    emit({ kind: "phase", phase: kind });
    const journal = await Journal.create(backend.journalFile, pass.base);
    let journalFailure: string | undefined;
    pass.snapshot.useJournal(journal, ({ message }) => {
      journalFailure ??= `${message}. Nothing more was started; the state holds all that was done.`;
      pass.stop.stop("failed");
    });
    const startTime = seconds();
    let outcome: Outcome | undefined;
    try {
      outcome = await work(pass);
    } finally {
      await pass.stop.settled();
      await save(settings, pass, journal);
      const ok = outcome !== undefined && !pass.stop.reason && outcome.programFailed === undefined;
      const counts = Object.entries(summarise(outcome?.steps ?? [])).filter(([, count]) => count > 0);
      const result = ok ? "succeeded" : "failed";
      await record(settings, pass, { kind, startTime, result, resourceChanges: Object.fromEntries(counts) });
    }
    return conclude(settings, pass, journalFailure ? { ...outcome, failed: journalFailure } : outcome);
  } finally {
    await lock.release();
  }
}

/** Writes the state; where that fails, the journal is left for the next run. */
async function save(
  { backend, crypter }: RunSettings,
  { snapshot, metadata }: Pass,
  journal: Journal,
): Promise<void> {
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

/** Adds the run to the history; where that fails, the run itself has not. */
async function record(
  { backend, config }: RunSettings,
  { log }: Pass,
  entry: Pick<HistoryEntry, "kind" | "startTime" | "result" | "resourceChanges">,
): Promise<void> {
  await backend.record({ ...entry, endTime: seconds(), config: config.raw }).catch(({ message }: Error) => {
    log.diagnostic({ severity: "warning", message: `The history of the stack lacks this run: ${message}` });
  });
}

const seconds = () => Math.floor(Date.now() / 1000);
