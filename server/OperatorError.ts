/**
 * An error that the operator of the service can solve. Commands print only its message, without a stack trace. For
 * rejected requests, use a `ServiceError` instead.
 */
export class OperatorError extends Error {
  override readonly name: string = "OperatorError";
  /** Exit code of a command that fails with this error. */
  readonly exitCode: number = 1;
}

/** Runs all checks, and returns the messages of the checks that throw an {@link OperatorError}. */
export function problemsOf(checks: readonly (() => unknown)[]): readonly string[] {
  return checks.flatMap((check) => {
    try {
      check();
      return [];
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      return [error.message];
    }
  });
}

/** Causes of connections and listeners that failed, by the system's error code. */
const SOCKET_CAUSES: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EADDRINUSE: "the port is already in use",
  EADDRNOTAVAIL: "this machine does not have the address",
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "the host name does not resolve",
};

/** Returns the cause of a caught error, for use in an error message. */
export function reasonOf(error: unknown): string {
  const { code = "" } = Object(error) as Partial<NodeJS.ErrnoException>;
  const cause = SOCKET_CAUSES[code];
  if (cause !== undefined && !Object.hasOwn(Object(error), "path")) return `${cause} (${code})`;
  return error instanceof Error ? error.message || code : String(error);
}
