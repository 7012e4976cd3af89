import { type ErrorMore, GatehouseError } from "@gatehouse-access/sdk/errors";
import type { CommandErrorCode } from "../errorCodes.ts";
import type { Confirmable, Plan, Result, TargetOptions } from "./model.ts";

/**
 * Base of the errors of commands and engines. Thrown itself for contradicting options (`usage`), targets that are no
 * resources (`target`), an unplanned step (`not_planned`), a provider that does not start (`provider`), and failures of
 * the Pulumi CLI (`cli`).
 */
export class EngineError extends GatehouseError {
  override readonly name: string;
  declare readonly code: CommandErrorCode;

  /** @param detail what is wrong, without the field */
  constructor(code: CommandErrorCode, detail: string, { field, value, remedy, ...options }: ErrorMore = {}) {
    super({ code, detail, field, value, remedy }, options);
    this.name = new.target.name;
  }
}

const INSTALL = "https://www.pulumi.com/docs/install/";

/** There is no `pulumi` on the PATH. Where the embedded engine was named and cannot run the stack: UnsupportedError. */
export class NoEngineError extends EngineError {
  /** @param runtime what the program runs by; the built-in engine has Node.js alone */
  constructor(runtime: string) {
    const install = `install the Pulumi CLI (${INSTALL})`;
    super(
      "no_engine",
      `There is no \`pulumi\` command on the PATH. ${
        runtime === "nodejs"
          ? `Either ${install}, or run the program with the built-in engine: --engine embedded`
          : `For a program of the runtime ${runtime}, ${install}: the built-in engine runs those of nodejs alone.`
      }`,
    );
  }
}

/**
 * The project's files cannot be used: Pulumi.yaml or the stack's configuration is missing or wrong, or the SDK is not
 * installed. A state that cannot be used is a BackendError, an exception of the program a ProgramError.
 */
export class ProjectError extends EngineError {
  constructor(detail: string, more?: ErrorMore) {
    super("project", detail, more);
  }
}

/**
 * No stack was named and none can be meant, or there is no stack of that name. A stack that is there and cannot be read
 * is a BackendError or a PassphraseError.
 */
export class StackSelectionError extends EngineError {
  constructor(message: string) {
    super("stack_selection", message);
  }

  /** @param known the stacks of the project */
  static missing(project: string, stack: string, known: readonly string[]): StackSelectionError {
    return new StackSelectionError(
      `There is no stack ${stack} of the project ${project}; ${thereAre(known)}. ` +
        "A new one is made by `gatehouse up`, or by `gatehouse preview --create`.",
    );
  }

  /** @param known the stacks of the project: none, or several */
  static unnamed(project: string, known: readonly string[]): StackSelectionError {
    return new StackSelectionError(
      `Name the stack with --stack or PULUMI_STACK (of ${project}, ${thereAre(known)}).`,
    );
  }
}

const NAMED_MAX = 20;

function thereAre(stacks: readonly string[]): string {
  if (stacks.length < 2) return `there is ${stacks[0] ?? "none yet"}`;
  const more = stacks.length - NAMED_MAX;
  return `there are ${stacks.slice(0, NAMED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/**
 * No state backend was chosen, or one of its files cannot be read, understood or written. A kind of backend or state
 * that the embedded engine does not have is an UnsupportedError.
 */
export class BackendError extends EngineError {
  constructor(detail: string, more?: ErrorMore) {
    super("backend", detail, more);
  }
}

/** The passphrase of the stack's secrets is missing or wrong, or a secret was encrypted with another key. */
export class PassphraseError extends EngineError {
  constructor(message: string) {
    super("passphrase", message);
  }

  static wrong(): PassphraseError {
    return new PassphraseError("The passphrase is not the one this stack was made with.");
  }
}

/**
 * Another process holds the stack. A lock that a dead process of this machine left is no such error: the next command
 * takes it away and merges the journal, or throws a JournalConflictError.
 */
export class LockedError extends EngineError {
  constructor(message: string) {
    super("locked", message);
  }

  /** @param holders each with its file, its user and since when; empty where that is not known */
  static heldBy(holders: readonly string[]): LockedError {
    const where = holders.length > 0 ? `, or delete the file):\n  ${holders.join("\n  ")}` : ").";
    return new LockedError(
      "The stack is locked by another process. Wait for it to end; if it is gone, remove the lock " +
        `(\`pulumi cancel\`${where}`,
    );
  }
}

/**
 * The journal of a run that was killed no longer fits the state, because something else has changed it since. A journal
 * that cannot be read or written is a BackendError.
 */
export class JournalConflictError extends EngineError {
  constructor(message: string) {
    super("journal_conflict", message);
  }
}

/** One use of a feature that the embedded engine does not have. */
export interface UnsupportedUse {
  readonly id: string;
  readonly feature: string;
  readonly resource: string;
  readonly hint: string;
}

/**
 * The program or the state uses a feature that the embedded engine does not have; nothing was touched. Files that no
 * engine could use are a ProjectError or a BackendError.
 */
export class UnsupportedError extends EngineError {
  readonly uses: readonly UnsupportedUse[];
  constructor(uses: readonly UnsupportedUse[]) {
    const lines = uses.map((use) => `  ${use.resource}: ${use.feature}. ${use.hint}`);
    super(
      "unsupported",
      `The embedded engine does not support what this stack uses; nothing was changed.\n${lines.join("\n")}\nHow to install the Pulumi CLI: ${INSTALL}`,
    );
    this.uses = uses;
  }
}

/**
 * A protected resource would be deleted or replaced. It is the error of a step, whose run then ends with an
 * UpdateFailedError.
 */
export class ProtectedError extends EngineError {
  /** @param what would happen to it, as a sentence */
  constructor(what: string, urn: string) {
    super(
      "protected",
      `${what}. Take the option protect away in the program and run up, or run: pulumi state unprotect '${urn}'`,
    );
  }
}

/** Somebody was asked whether to carry out a plan, and said no; nothing was changed. */
export class DeclinedError extends EngineError {
  constructor() {
    super("declined", "Nothing was changed.");
  }
}

/** Asks `confirm`, if any, whether to carry out a plan. @throws DeclinedError for a no */
export async function requireConfirmation({ confirm }: Confirmable, plan: Plan): Promise<void> {
  if (confirm && !(await confirm(plan))) throw new DeclinedError();
}

/** Base of the errors that end a run. What ends it before it has begun is another EngineError. */
export class RunError extends EngineError {
  /** What was done, and what failed. */
  readonly result: Result;
  constructor(code: CommandErrorCode, message: string, result: Result) {
    super(code, message);
    this.result = result;
  }
}

/**
 * The Pulumi program failed: an exception, or an exit code that is not 0. A resource that fails while its program goes on
 * is an UpdateFailedError.
 */
export class ProgramError extends RunError {
  constructor(message: string, result: Result) {
    super("program", message, result);
  }
}

/**
 * A step failed, or the service would refuse a plan. A failure of the program is a ProgramError, an interrupted run a
 * CancelledError.
 */
export class UpdateFailedError extends RunError {
  constructor(message: string, result: Result) {
    super("failed", message, result);
  }
}

/**
 * The run was interrupted: by SIGINT, SIGTERM, SIGHUP or an abort signal. The state holds every finished step. A run that stops
 * because a step failed is an UpdateFailedError.
 */
export class CancelledError extends RunError {
  constructor(result: Result) {
    const message = "Interrupted: the steps in flight were finished and the state was written.";
    super("cancelled", message, result);
  }
}

/** @throws EngineError (`usage`) where options contradict each other */
export function checkTargetOptions(options: TargetOptions): void {
  const targets = (options.target?.length ?? 0) > 0;
  const excludes = (options.exclude?.length ?? 0) > 0;
  if (targets && excludes) throw new EngineError("usage", "--target and --exclude cannot be combined.");
  if (options.targetDependents && !targets) {
    throw new EngineError("usage", "--target-dependents needs a --target.");
  }
  if (options.excludeDependents && !excludes) {
    throw new EngineError("usage", "--exclude-dependents needs an --exclude.");
  }
}
