import { type ErrorMore, fileFailure, GatehouseError } from "@gatehouse-access/sdk/errors";
import type { CommandErrorCode } from "../errorCodes.ts";
import type { Confirmable, Plan, Result, TargetOptions } from "./model.ts";

/**
 * Base class of the errors of commands and engines. An error that belongs to no subclass reports contradicting options
 * (`usage`), targets that match no resource (`target`), an unplanned step (`not_planned`), a provider that does not
 * start (`provider`), or a failure of the Pulumi CLI (`cli`).
 */
export class EngineError extends GatehouseError {
  override readonly name: string;
  declare readonly code: CommandErrorCode;

  /** @param detail the problem, without the name of the field */
  constructor(code: CommandErrorCode, detail: string, { field, value, remedy, ...options }: ErrorMore = {}) {
    super({ code, detail, field, value, remedy }, options);
    this.name = new.target.name;
  }
}

/**
 * Returns a `catch` handler that converts a failed access to a file to an EngineError.
 * @param file path of the file, or a description that contains the path
 * @throws EngineError with the cause and a remedy
 */
export const fileError =
  (code: CommandErrorCode, action: "read" | "write", file: string) =>
  (cause: unknown): never => {
    const { detail, remedy } = fileFailure(action, file, cause);
    throw new EngineError(code, detail, { remedy, cause });
  };

/** The installation page of the Pulumi CLI. */
export const INSTALL = "https://www.pulumi.com/docs/install/";

/**
 * No `pulumi` command is on the PATH. If the user selects the embedded engine and it cannot run the stack, the error is
 * an UnsupportedError instead.
 */
export class NoEngineError extends EngineError {
  /** @param runtime runtime of the program; the embedded engine supports only Node.js */
  constructor(runtime: string) {
    const install = `install the Pulumi CLI (${INSTALL})`;
    super(
      "no_engine",
      `Cannot find the \`pulumi\` command on the PATH. ${
        runtime === "nodejs"
          ? `Either ${install}, or run the program with the embedded engine: --engine embedded, or GATEHOUSE_ENGINE=embedded`
          : `For a program of the runtime ${runtime}, ${install}: the embedded engine supports only nodejs.`
      }`,
    );
  }
}

/**
 * The project's files cannot be used: Pulumi.yaml or the stack's configuration is missing or invalid, or the SDK is not
 * installed. An unusable state is a BackendError; an exception of the program is a ProgramError.
 */
export class ProjectError extends EngineError {
  constructor(detail: string, more?: ErrorMore) {
    super("project", detail, more);
  }
}

/**
 * No stack is selected and the project does not have exactly one stack, or the selected stack does not exist. An
 * existing stack that cannot be read is a BackendError or a PassphraseError.
 */
export class StackSelectionError extends EngineError {
  constructor(message: string) {
    super("stack_selection", message);
  }

  /** @param known names of the stacks that the project has */
  static missing(project: string, stack: string, known: readonly string[]): StackSelectionError {
    return new StackSelectionError(
      `The project ${project} has no stack ${stack}; ${existingStacks(known)}. ` +
        "To create the stack, run `gatehouse up` or `gatehouse preview --create`.",
    );
  }

  /** @param known names of the stacks that the project has: none, or more than one */
  static unnamed(project: string, known: readonly string[]): StackSelectionError {
    return new StackSelectionError(
      `Set the stack with --stack or PULUMI_STACK (project ${project}: ${existingStacks(known)}).`,
    );
  }
}

const NAMED_MAX = 20;

function existingStacks(stacks: readonly string[]): string {
  if (stacks.length === 0) return "no stacks exist";
  const more = stacks.length - NAMED_MAX;
  return `existing stacks: ${stacks.slice(0, NAMED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/**
 * No state backend is configured, or a file of the backend cannot be read, parsed or written. A kind of backend or
 * state that the embedded engine does not support is an UnsupportedError.
 */
export class BackendError extends EngineError {
  constructor(detail: string, more?: ErrorMore) {
    super("backend", detail, more);
  }
}

/** The passphrase of the stack's secrets is missing or wrong, or a secret was encrypted with another key. */
export class PassphraseError extends EngineError {
  constructor(detail: string, more?: ErrorMore) {
    super("passphrase", detail, more);
  }

  static wrong(): PassphraseError {
    return new PassphraseError(
      "The passphrase is wrong: this stack was created with a different passphrase. Set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE, to that passphrase.",
    );
  }
}

/**
 * Another process holds the lock of the stack. The lock of a dead process on this machine does not cause this error:
 * the next command removes the lock and merges the journal, or throws a JournalConflictError.
 */
export class LockedError extends EngineError {
  constructor(message: string) {
    super("locked", message);
  }

  /** @param holders file, user and time of each lock; empty if unknown */
  static heldBy(holders: readonly string[]): LockedError {
    const where = holders.length > 0 ? `, or delete the file):\n  ${holders.join("\n  ")}` : ").";
    return new LockedError(
      "The stack is locked by another process. Wait for the process to end; if it no longer exists, remove the lock " +
        `(\`pulumi cancel\`${where}`,
    );
  }
}

/**
 * The journal of a killed run does not match the state, because another program changed the state after the run was
 * killed. A journal that cannot be read or written is a BackendError.
 */
export class JournalConflictError extends EngineError {
  constructor(message: string) {
    super("journal_conflict", message);
  }
}

/** A use of an unsupported feature in a program or state, with a hint for the user. */
export interface UnsupportedUse {
  readonly id: string;
  readonly feature: string;
  readonly resource: string;
  readonly hint: string;
}

/**
 * The program or the state uses a feature that the embedded engine does not support. Nothing was changed. If a file is
 * invalid for all engines, the error is a ProjectError or a BackendError.
 */
export class UnsupportedError extends EngineError {
  readonly uses: readonly UnsupportedUse[];
  constructor(uses: readonly UnsupportedUse[]) {
    const lines = uses.map((use) => `  ${use.resource}: ${use.feature}. ${use.hint}`);
    super(
      "unsupported",
      `The embedded engine does not support features of this stack; nothing was changed.\n${lines.join("\n")}\nTo install the Pulumi CLI, see ${INSTALL}`,
    );
    this.uses = uses;
  }
}

/**
 * A protected resource would be deleted or replaced. The error of the step is a ProtectedError, and the run ends with
 * an UpdateFailedError.
 */
export class ProtectedError extends EngineError {
  /** @param what a sentence, without a final period, that describes the rejected deletion or replacement */
  constructor(what: string, urn: string) {
    super(
      "protected",
      `${what}. Remove the option protect in the program and run up, or run: pulumi state unprotect '${urn}'`,
    );
  }
}

/** The user did not confirm the plan, so the command changed nothing. */
export class DeclinedError extends EngineError {
  constructor() {
    super("declined", "Nothing was changed.");
  }
}

/**
 * Calls the user's `confirm` function with the plan, if the options contain this function.
 * @throws DeclinedError if `confirm` returns false
 */
export async function requireConfirmation({ confirm }: Confirmable, plan: Plan): Promise<void> {
  if (confirm && !(await confirm(plan))) throw new DeclinedError();
}

/** Base class of the errors that end a run. Errors before the start of a run have other classes. */
export class RunError extends EngineError {
  /** The finished and failed steps. */
  readonly result: Result;
  /**
   * True if the diagnostics of the result contain the causes: one error with a URN for each failed resource, and for each
   * error of the program. The message of this error then adds nothing to them.
   */
  readonly isExplained: boolean;

  constructor(code: CommandErrorCode, message: string, result: Result, isExplained = false) {
    super(code, message);
    this.result = result;
    this.isExplained = isExplained;
  }
}

/**
 * The Pulumi program failed with an exception or an exit code other than 0. If a resource fails and the program
 * continues, the error is an UpdateFailedError.
 */
export class ProgramError extends RunError {
  /** The call stacks of the errors that the program threw. */
  readonly stacks: readonly string[];

  constructor(message: string, result: Result, { isExplained = false, stacks = [] }: ProgramErrorMore = {}) {
    super("program", message, result, isExplained);
    this.stacks = stacks;
  }
}

interface ProgramErrorMore {
  readonly isExplained?: boolean;
  readonly stacks?: readonly string[];
}

/**
 * A step failed, or the preflight of a plan failed. If the program fails, the error is a ProgramError; if the run is
 * interrupted, the error is a CancelledError.
 */
export class UpdateFailedError extends RunError {
  constructor(message: string, result: Result, isExplained = false) {
    super("failed", message, result, isExplained);
  }
}

/**
 * The run was interrupted by SIGINT, SIGTERM, SIGHUP or an abort signal. The state contains all finished steps. If a
 * run stops because a step failed, the error is an UpdateFailedError.
 */
export class CancelledError extends RunError {
  constructor(result: Result) {
    const message = "Interrupted. The steps in flight were finished and the state was written.";
    super("cancelled", message, result);
  }
}

/** @throws EngineError (`usage`) if options contradict each other */
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
