import { type ErrorMore, fileFailure, GatehouseError } from "@gatehouse-access/sdk/errors";
import type { CommandErrorCode } from "../errorCodes.ts";
import type { Confirmable, Plan, Result, TargetOptions } from "./model.ts";

/**
 * Base class of the errors of commands and engines. Errors of this class itself have one of these codes: contradictory
 * options (`usage`), targets that match no resource (`target`), an unplanned step (`not_planned`), a provider that does
 * not start (`provider`), or a failure of the Pulumi CLI (`pulumi_cli`).
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
 * Returns a `catch` handler that converts the error of a file access to an EngineError.
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
 * Thrown if there is no `pulumi` command on the PATH. If the user selects the embedded engine and the engine cannot run
 * the stack, the error is an UnsupportedError instead.
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
 * Thrown if the project's files cannot be used, because Pulumi.yaml or the stack's configuration is missing or invalid,
 * or the SDK is not installed. If the state cannot be used, the error is a BackendError. If the program throws an
 * exception, the error is a ProgramError.
 */
export class ProjectError extends EngineError {
  constructor(detail: string, more?: ErrorMore) {
    super("project", detail, more);
  }
}

/**
 * Thrown if the selected stack does not exist, or if no stack is selected and the project does not have exactly one
 * stack. If an existing stack cannot be read, the error is a BackendError or a PassphraseError.
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
 * Thrown if no state backend is configured, or if a file of the backend cannot be read, parsed or written. If the
 * embedded engine does not support the backend or the state, the error is an UnsupportedError.
 */
export class BackendError extends EngineError {
  constructor(detail: string, more?: ErrorMore) {
    super("backend", detail, more);
  }
}

/**
 * Thrown if the passphrase of the stack's secrets is missing or wrong, or if a secret was encrypted with a different
 * key.
 */
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
 * Thrown if a different process holds the lock of the stack. If that process died on this machine, the next command
 * removes the lock. It then merges the journal, or throws a JournalConflictError.
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
 * Thrown if the journal of a killed run does not match the state, because a different program changed the state after
 * the run was killed. If the journal cannot be read or written, the error is a BackendError.
 */
export class JournalConflictError extends EngineError {
  constructor(message: string) {
    super("journal_conflict", message);
  }
}

/** An unsupported feature that a program or a state uses, and a hint for the user. */
export interface UnsupportedUse {
  readonly id: string;
  readonly feature: string;
  readonly resource: string;
  readonly hint: string;
}

/**
 * Thrown if the program or the state uses a feature that the embedded engine does not support. Nothing was changed. If
 * a file is invalid for all engines, the error is a ProjectError or a BackendError.
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

/** The error of a step that would delete or replace a protected resource. The run ends with an UpdateFailedError. */
export class ProtectedError extends EngineError {
  /** @param what the rejected deletion or replacement, as a sentence without a final period */
  constructor(what: string, urn: string) {
    super(
      "protected",
      `${what}. Remove the option protect in the program and run up, or run: pulumi state unprotect '${urn}'`,
    );
  }
}

/** Thrown if the user did not confirm the plan. The command changed nothing. */
export class DeclinedError extends EngineError {
  constructor() {
    super("declined", "Nothing was changed.");
  }
}

/**
 * Passes the plan to the function `confirm` of the options, if it is set.
 * @throws DeclinedError if `confirm` returns false
 */
export async function requireConfirmation({ confirm }: Confirmable, plan: Plan): Promise<void> {
  if (confirm && !(await confirm(plan))) throw new DeclinedError();
}

/** Base class of the errors that end a run. Errors that occur before the start of a run have other classes. */
export class RunError extends EngineError {
  /** The finished and failed steps. */
  readonly result: Result;
  /**
   * True if the diagnostics of the result contain all causes: one error for each failed resource, and one for each
   * error of the program. Each of these errors has a URN. In this case, the message of this error contains no
   * additional cause.
   */
  readonly isExplained: boolean;

  constructor(code: CommandErrorCode, message: string, result: Result, isExplained = false) {
    super(code, message);
    this.result = result;
    this.isExplained = isExplained;
  }
}

/**
 * Thrown if the Pulumi program threw an exception, or exited with a code other than 0. If a resource fails and the
 * program continues, the error is an UpdateFailedError.
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
 * Thrown if a step failed, or if the preflight of a plan failed. If the program fails, the error is a ProgramError. If
 * the run is interrupted, the error is a CancelledError.
 */
export class UpdateFailedError extends RunError {
  constructor(message: string, result: Result, isExplained = false) {
    super("failed", message, result, isExplained);
  }
}

/**
 * Thrown if the run was interrupted by SIGINT, SIGTERM, SIGHUP or an abort signal. The state contains all finished
 * steps. If a run stops because a step failed, the error is an UpdateFailedError.
 */
export class CancelledError extends RunError {
  constructor(result: Result) {
    const message = "Interrupted. The steps in flight were finished and the state was written.";
    super("cancelled", message, result);
  }
}

/** @throws EngineError (`usage`) if the options contradict each other */
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
