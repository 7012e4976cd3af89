/**
 * A problem that the person who runs the service can solve; a command shows its message alone, without a stack. Refusals
 * of requests are a `ServiceError`.
 */
export class OperatorError extends Error {
  override readonly name: string = "OperatorError";
  /** Exit code of the command that fails with it. */
  readonly exitCode: number = 1;
}

/** The message of a caught error, for a message that names what failed. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
