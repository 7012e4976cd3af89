/** Any error this package raises on purpose. */
export class GatehouseError extends Error {
  override readonly name: string = "GatehouseError";
}

/** Options, environment or arguments do not make sense; nothing was sent. */
export class ConfigurationError extends GatehouseError {
  override readonly name = "ConfigurationError";
}

/**
 * What a failed request did on the server:
 * - `none`: nothing; it never arrived, was refused, or only reads
 * - `unknown`: it may have taken effect, so look before repeating it
 * - `done`: it took effect, only its answer is unusable
 */
export type Outcome = "none" | "unknown" | "done";

export interface RequestErrorDetails {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly status?: number;
  readonly requestId?: string;
  readonly serverMessage?: string;
  readonly outcome: Outcome;
  readonly attempts: number;
}

/** A request failed. Also used itself, for a status that has no class of its own. */
export class RequestError extends GatehouseError {
  override readonly name: string = "RequestError";
  /** Id of the operation, as in the contract. */
  readonly operation: string;
  readonly method: string;
  /** Path with its parameters filled in, without the query. */
  readonly path: string;
  readonly status?: number;
  /** The server's `X-Request-ID`, for finding the request in its log. */
  readonly requestId?: string;
  /** The message of the server's answer, if it had one. */
  readonly serverMessage?: string;
  readonly outcome: Outcome;
  /** How many times the request was sent or tried. */
  readonly attempts: number;

  constructor(what: string, details: RequestErrorDetails, options?: ErrorOptions) {
    const { operation, method, path, serverMessage, requestId, attempts, outcome } = details;
    const notes = [
      ...(requestId === undefined ? [] : [`request id ${requestId}`]),
      ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ];
    const unclear = outcome === "unknown" ? "; it may have taken effect, look before repeating it" : "";
    super(
      `${operation} (${method} ${path}): ${what}${serverMessage ? `: ${serverMessage}` : ""}` +
        `${notes.length > 0 ? ` [${notes.join(", ")}]` : ""}${unclear}`,
      options,
    );
    this.operation = operation;
    this.method = method;
    this.path = path;
    this.outcome = outcome;
    this.attempts = attempts;
    if (details.status !== undefined) this.status = details.status;
    if (requestId !== undefined) this.requestId = requestId;
    if (serverMessage !== undefined) this.serverMessage = serverMessage;
  }
}

/** 400, 415 or 422: the server finds the request invalid (rules section 8). */
export class ValidationError extends RequestError {
  override readonly name = "ValidationError";
  /** Names of the fields that are at fault, on the wire's spelling, where the server lists them. */
  readonly fields: readonly string[];

  constructor(what: string, details: RequestErrorDetails, fields: readonly string[] = []) {
    super(what, details);
    this.fields = fields;
  }
}

/** 401, or no credential where one is needed. */
export class AuthenticationError extends RequestError {
  override readonly name = "AuthenticationError";
  /** When the token ended, if that is why. */
  readonly expiredAt?: Date;
  readonly #mfaToken?: string;

  constructor(
    what: string,
    details: RequestErrorDetails,
    more: { readonly expiredAt?: Date; readonly mfaToken?: string; readonly cause?: unknown } = {},
  ) {
    super(what, details, "cause" in more ? { cause: more.cause } : undefined);
    if (more.expiredAt) this.expiredAt = more.expiredAt;
    if (more.mfaToken) this.#mfaToken = more.mfaToken;
  }

  /**
   * The password was right and the user has MFA: what authMfa needs beside the code (rules section 10).
   * A getter, so that printing the error does not show it.
   */
  get mfaToken(): string | undefined {
    return this.#mfaToken;
  }
}

/** 402 or 403: known, but not allowed; or a credential that can not do it, found out before sending. */
export class PermissionError extends RequestError {
  override readonly name = "PermissionError";
}

/**
 * 404 in the service's form, `{message}` or without a body (rules section 8): no such object in the credential's
 * namespace. Any other 404, a proxy's page for instance, is a {@link ProtocolError}.
 */
export class NotFoundError extends RequestError {
  override readonly name = "NotFoundError";
}

/** 409: it exists already. */
export class ConflictError extends RequestError {
  override readonly name = "ConflictError";
  /** Names of the fields that are taken, in the wire's spelling, where the server lists them. */
  readonly fields: readonly string[];

  constructor(what: string, details: RequestErrorDetails, fields: readonly string[] = []) {
    super(what, details);
    this.fields = fields;
  }
}

/** 412: the object is not as `ifMatch` says, so that nothing was done. Read it again before changing it. */
export class PreconditionFailedError extends RequestError {
  override readonly name = "PreconditionFailedError";
}

/** 429 of a login: too many wrong passwords (rules section 9). Never repeated by the client. */
export class LockoutError extends RequestError {
  override readonly name = "LockoutError";
  /** When the lock ends, if the server said so. */
  readonly until?: Date;

  constructor(what: string, details: RequestErrorDetails, until?: Date) {
    super(what, details);
    if (until) this.until = until;
  }
}

/** 424: the payment gateway of a cloud instance refused, or failed (rules section 18). */
export class PaymentError extends RequestError {
  override readonly name = "PaymentError";
  /** What went wrong, as the gateway calls it: `card_declined`, `processing_error`, … */
  readonly code?: string;

  constructor(what: string, details: RequestErrorDetails, code?: string) {
    super(what, details);
    if (code !== undefined) this.code = code;
  }
}

/** An answer that may say when to come back. */
class RetryAfterError extends RequestError {
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfter?: number;

  constructor(what: string, details: RequestErrorDetails, retryAfter?: number) {
    super(what, details);
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
  }
}

/** 429 that is no lockout: too many requests. A login is not repeated by the client. */
export class RateLimitError extends RetryAfterError {
  override readonly name = "RateLimitError";
}

/** 500 and up. */
export class ServerError extends RetryAfterError {
  override readonly name = "ServerError";
}

/**
 * Why there is no answer: `unreachable` (no connection, so nothing was sent), `untrusted` (no TLS, or a
 * certificate that is not trusted: nothing was sent), `interrupted` (the connection broke), `timeout`, `aborted` (by the
 * caller's signal).
 */
export type TransportFailure = "unreachable" | "untrusted" | "interrupted" | "timeout" | "aborted";

/** No complete answer came. */
export class TransportError extends RequestError {
  override readonly name = "TransportError";
  readonly reason: TransportFailure;

  constructor(what: string, details: RequestErrorDetails, reason: TransportFailure, cause: unknown) {
    super(what, details, { cause });
    this.reason = reason;
  }
}

/** An answer came that this service does not give: a redirect, no JSON, the wrong kind of JSON, a foreign 404. */
export class ProtocolError extends RequestError {
  override readonly name = "ProtocolError";
}

/** True when the object that was asked for does not exist (404). */
export function isNotFound(error: unknown): error is NotFoundError {
  return error instanceof NotFoundError;
}
