import { BackendError, JournalConflictError } from "../errors.ts";
import type { Crypter } from "../state/crypter.ts";
import { removeIfThere } from "../state/durableFile.ts";
import type { FileBackend } from "../state/fileBackend.ts";
import { appendCommit, type JournalLine, readJournal } from "../state/journal.ts";
import { Snapshot } from "../state/snapshot.ts";
import { findLocks, removeLocks, takeLock } from "../state/stackLock.ts";
import { StateCodec } from "../state/stateCodec.ts";

/**
 * Looks for a gatehouse process that died while it held the stack: the state gets the steps in its journal, and as
 * pending ones the operations that it had in flight; its lock is removed.
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
    const told = current ? await merge(backend, crypter, current) : "Nothing of it was lost.";
    await removeIfThere(backend.journalFile);
    await removeLocks(dead);
    const [left] = dead;
    const what = left
      ? `An earlier run was killed (pid ${left.content.pid}, since ${left.content.timestamp}).`
      : "An earlier run ended before it had written the state.";
    return `${what} ${told}`;
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
