/** What the person who runs the service can put right; shown as its message alone, without a stack. */
export class OperatorError extends Error {
  override readonly name: string = "OperatorError";
  /** How the command ends. */
  readonly exitCode: number = 1;
}
