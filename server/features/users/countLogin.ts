import { ForbiddenError, LockedOutError, UnauthenticatedError } from "../../errors.ts";
import type { Services } from "../../services.ts";

/**
 * Result of a login step, for the metrics. `mfa_needed`: the password was correct, but the second factor is still
 * missing.
 */
type LoginResult = "success" | "wrong" | "mfa_needed" | "locked" | "unconfirmed" | "error";

/** Runs a step of a login, and counts the result in the metrics. */
export async function countLogin<T>(
  { metrics }: Services,
  step: "password" | "mfa" | "saml",
  work: () => Promise<T>,
): Promise<T> {
  let result: LoginResult = "success";
  try {
    return await work();
  } catch (error) {
    result = resultOf(error);
    throw error;
  } finally {
    metrics.logins.inc({ step, result });
  }
}

function resultOf(error: unknown): LoginResult {
  if (error instanceof LockedOutError) return "locked";
  if (error instanceof ForbiddenError) return "unconfirmed";
  if (error instanceof UnauthenticatedError) return error.headers["X-MFA-Token"] ? "mfa_needed" : "wrong";
  return "error";
}
