/**
 * An error that the operator of the service can solve. Commands print only its message, without a stack trace. For
 * rejected requests, use a `ServiceError` instead.
 */
export class OperatorError extends Error {
  override readonly name: string = "OperatorError";
  /** Exit code of a command that fails with this error. */
  readonly exitCode: number = 1;
}

/** Returns the message of a caught error, for use in another message. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
