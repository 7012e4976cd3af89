import type { Result } from "./model.ts";

/** Base of every error this engine throws on purpose; `code` is stable and can be matched on. */
export class EngineError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** No `pulumi` command on the PATH, and the embedded engine was not asked for. */
export class NoEngineError extends EngineError {
  constructor() {
    super(
      "no_engine",
      "There is no `pulumi` command on the PATH. Either install the Pulumi CLI " +
        "(https://www.pulumi.com/docs/install/), or run the program with the built-in engine: --engine embedded",
    );
  }
}

/** The project folder, Pulumi.yaml or the stack's configuration cannot be used as they are. */
export class ProjectError extends EngineError {
  constructor(message: string, options?: ErrorOptions) {
    super("project", message, options);
  }
}

/** No stack was named and none can be meant, or the stack does not exist. */
export class StackSelectionError extends EngineError {
  constructor(message: string) {
    super("stack_selection", message);
  }

  /** There is no such stack. @param known those there are */
  static missing(project: string, stack: string, known: readonly string[]): StackSelectionError {
    return new StackSelectionError(
      `There is no stack ${stack} of the project ${project}; ${thereAre(known)}. ` +
        "A new one is made by `gatehouse up`, or by `gatehouse preview --create`.",
    );
  }

  /** None was named, and not exactly one can be meant. @param known those there are */
  static unnamed(project: string, known: readonly string[]): StackSelectionError {
    return new StackSelectionError(
      `Name the stack with --stack or PULUMI_STACK (of ${project}, ${thereAre(known)}).`,
    );
  }
}

/** As many stacks as are named. */
const NAMED_MAX = 20;

function thereAre(stacks: readonly string[]): string {
  if (stacks.length < 2) return `there is ${stacks[0] ?? "none yet"}`;
  const more = stacks.length - NAMED_MAX;
  return `there are ${stacks.slice(0, NAMED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The state backend is missing, is of a kind the engine cannot use, or holds a file it cannot read. */
export class BackendError extends EngineError {
  constructor(message: string, options?: ErrorOptions) {
    super("backend", message, options);
  }
}

/** The passphrase of the stack's secrets is missing or wrong. */
export class PassphraseError extends EngineError {
  constructor(message: string) {
    super("passphrase", message);
  }
}

/** Another process holds the stack. */
export class LockedError extends EngineError {
  constructor(message: string) {
    super("locked", message);
  }

  /** @param holders each with its file, who it is and since when; none where that is not known */
  static heldBy(holders: readonly string[]): LockedError {
    const where = holders.length > 0 ? `, or delete the file):\n  ${holders.join("\n  ")}` : ").";
    return new LockedError(
      "The stack is locked by another process. Wait for it to end; if it is gone, remove the lock " +
        `(\`pulumi cancel\`${where}`,
    );
  }
}

/** A journal of an interrupted run no longer fits the state it was written for. */
export class JournalConflictError extends EngineError {
  constructor(message: string) {
    super("journal_conflict", message);
  }
}

/** One use of a feature the embedded engine does not have. */
export type UnsupportedUse = { id: string; feature: string; resource: string; hint: string };

/** The program or the state uses what the embedded engine does not have; nothing was touched. */
export class UnsupportedError extends EngineError {
  readonly uses: UnsupportedUse[];
  constructor(uses: UnsupportedUse[]) {
    const lines = uses.map((use) => `  ${use.resource}: ${use.feature}. ${use.hint}`);
    super(
      "unsupported",
      `The embedded engine does not support what this stack uses; nothing was changed.\n${lines.join("\n")}`,
    );
    this.uses = uses;
  }
}

/** The Pulumi program itself failed (an exception, or a non-zero exit). */
export class ProgramError extends EngineError {
  readonly result: Result | undefined;
  constructor(message: string, result?: Result) {
    super("program", message);
    this.result = result;
  }
}

/** A protected resource would be deleted or replaced; `what` says so. */
export class ProtectedError extends EngineError {
  constructor(what: string, urn: string) {
    super(
      "protected",
      `${what}. Take the option protect away in the program and run up, or run: pulumi state unprotect '${urn}'`,
    );
  }
}

/** Some step, check or diff failed; `result` tells what was done and what was not. */
export class UpdateFailedError extends EngineError {
  readonly result: Result;
  constructor(message: string, result: Result) {
    super("failed", message);
    this.result = result;
  }
}

/** Somebody was asked and said no; nothing was changed. */
export class DeclinedError extends EngineError {
  constructor() {
    super("declined", "Nothing was changed.");
  }
}

/** The run was interrupted (SIGINT, SIGTERM or an abort signal); the state holds every finished step. */
export class CancelledError extends EngineError {
  readonly result: Result | undefined;
  constructor(result?: Result) {
    super("cancelled", "Interrupted: the steps in flight were finished and the state was written.");
    this.result = result;
  }
}
