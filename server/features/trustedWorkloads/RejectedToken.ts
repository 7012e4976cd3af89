import { UnauthenticatedError } from "../../errors.ts";

const GENERAL_REFUSAL =
  "no trusted workload of the namespace matches the token. Check the tenant, and the issuer and the audience of the " +
  "workload. The token must have a valid signature of its issuer and the claims iat and exp, and must not be expired";

/** The error for a token that the service rejects. */
export class RejectedToken extends UnauthenticatedError {
  /** The cause, for the log of the service. */
  readonly reason: string;

  /** @param message the response; by default a text that is the same for all namespaces and tokens */
  constructor(reason: string, message = GENERAL_REFUSAL) {
    super(message);
    this.reason = reason;
  }
}
