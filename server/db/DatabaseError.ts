import { OperatorError } from "../OperatorError.ts";

/** The error for a database that cannot be used. The message contains the cause. */
export class DatabaseError extends OperatorError {
  override readonly name = "DatabaseError";
}
