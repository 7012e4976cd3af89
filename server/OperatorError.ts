/**
 * A problem that the person who runs the service can solve; a command shows its message alone, without a stack. Refusals
 * of requests are a {@link ServiceError}.
 */
export class OperatorError extends Error {
  override readonly name: string = "OperatorError";
  /** How the command ends. */
  readonly exitCode: number = 1;
}
