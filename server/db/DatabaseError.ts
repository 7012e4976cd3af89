import { OperatorError } from "../OperatorError.ts";

/** The database cannot be used; the message says why. */
export class DatabaseError extends OperatorError {
  override readonly name = "DatabaseError";
}
