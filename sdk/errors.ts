import type { SdkErrorCode } from "./errorCodes.ts";

export { type ErrorKind, type SdkErrorCode, sdkErrors } from "./errorCodes.ts";

/** Where a value is: names of members and indexes of items, from the outside in. */
export type FieldPath = readonly (string | number)[];

/** An error as data. Its text is made of this; nothing reads the text. */
export interface ErrorFacts {
  /** The kind of error. docs/errors.md lists all codes; they stay the same in later releases. */
  readonly code: string;
  /** The kind of the object that it concerns, such as `FirewallRule`. */
  readonly resource?: string | undefined;
  /** The setting, flag or input that is at fault. */
  readonly field?: FieldPath | undefined;
  /** The value of the field, unless it may be secret. */
  readonly value?: unknown;
  /** What is wrong, without resource and field. */
  readonly detail: string;
  /** What the user does about it. */
  readonly remedy?: string | undefined;
  /** The server's `X-Request-ID`. */
  readonly requestId?: string | undefined;
}

/** The text of an error: `resource.field: detail; remedy`. */
export function errorText({ resource, field, detail, remedy }: ErrorFacts): string {
  const place = [...(resource === undefined ? [] : [resource]), ...(field ?? [])].join(".");
  const text = place === "" ? detail : `${place}: ${detail}`;
  if (remedy === undefined) return text;
  return `${text}${/[.?!]$/.test(detail) ? "" : ";"} ${remedy}`;
}

/** The base of all errors that the packages of this project throw on purpose. */
export class GatehouseError extends Error implements ErrorFacts {
  override readonly name: string = "GatehouseError";
  readonly code: string;
  // Declared, since a property that is undefined would be printed with the error.
  declare readonly resource?: string;
  declare readonly field?: FieldPath;
  declare readonly value?: unknown;
  readonly detail: string;
  declare readonly remedy?: string;
  declare readonly requestId?: string;

  /** @param text default {@link errorText} of the facts */
  constructor(facts: ErrorFacts, options?: ErrorOptions, text = errorText(facts)) {
    super(text, options);
    this.code = facts.code;
    this.detail = facts.detail;
    if (facts.resource !== undefined) this.resource = facts.resource;
    if (facts.field !== undefined) this.field = facts.field;
    if (facts.value !== undefined) this.value = facts.value;
    if (facts.remedy !== undefined) this.remedy = facts.remedy;
    if (facts.requestId !== undefined) this.requestId = facts.requestId;
  }

  /** The error as JSON: what front ends print, without cause and stack. */
  toJSON(): ErrorFacts & { readonly message: string } {
    const { code, message, resource, field, value, detail, remedy, requestId } = this;
    const facts = { code, message, resource, field, value, detail, remedy, requestId };
    return JSON.parse(JSON.stringify(facts)) as ReturnType<GatehouseError["toJSON"]>;
  }
}

/** A text of an error with its code at the end, as front ends print it. */
export const withCode = (text: string, { code }: Pick<ErrorFacts, "code">): string => `${text} [${code}]`;

/** The text of any error, {@link withCode} where it has one. */
export function printedError(error: unknown): string {
  if (error instanceof GatehouseError) return withCode(error.message, error);
  return error instanceof Error ? error.message : String(error);
}

/** What an error says beside its detail. */
export interface ErrorMore extends ErrorOptions {
  readonly field?: FieldPath | undefined;
  readonly value?: unknown;
  readonly remedy?: string | undefined;
}

/**
 * Thrown when options, environment variables or arguments are missing or wrong; nothing was sent. When the server finds
 * a request wrong, a {@link ValidationError} is thrown.
 */
export class ConfigurationError extends GatehouseError {
  override readonly name: string = "ConfigurationError";

  constructor(detail: string, { field, value, remedy, ...options }: ErrorMore = {}) {
    super({ code: "configuration", detail, field, value, remedy }, options);
  }
}

/**
 * What a failed request did on the server:
 * - `none`: nothing; it never arrived, was refused, or only reads
 * - `unknown`: it may have taken effect, so look before sending it again
 * - `done`: it took effect, only its answer cannot be read
 */
export type Outcome = "none" | "unknown" | "done";

/** What is known of a failed request. */
export interface RequestErrorDetails {
  /** Id of the operation, as in the contract. */
  readonly operation: string;
  readonly method: string;
  /** Path with its parameters filled in, without the query. */
  readonly path: string;
  /** Status of the answer; absent when no answer came. */
  readonly status?: number;
  /** The server's `X-Request-ID`, for finding the request in its log. */
  readonly requestId?: string;
  /** What the user does about it. */
  readonly remedy?: string | undefined;
  /** The message of the server's answer, if it had one. */
  readonly serverMessage?: string;
  readonly outcome: Outcome;
  /** How often the request was tried; 0 when it failed before the first try. */
  readonly attempts: number;
}

/**
 * The base of the errors of requests. Thrown itself for a status of 4xx that has no class of its own; when the server
 * cannot be reached or breaks off, a {@link TransportError} is thrown.
 */
export class RequestError extends GatehouseError implements RequestErrorDetails {
  override readonly name: string = "RequestError";
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly status?: number;
  readonly serverMessage?: string;
  readonly outcome: Outcome;
  readonly attempts: number;

  constructor(
    detail: string,
    details: RequestErrorDetails,
    { code = "request_refused", field, ...options }: RequestErrorMore = {},
  ) {
    const { operation, method, path, serverMessage, requestId, attempts, outcome, remedy } = details;
    const notes = [
      ...(requestId === undefined ? [] : [`request id ${requestId}`]),
      ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ];
    const unclear = outcome === "unknown" ? "; it may have taken effect, look before repeating it" : "";
    const facts = {
      code,
      field,
      detail: serverMessage ? `${detail}: ${serverMessage}` : detail,
      remedy,
      requestId,
    };
    super(
      facts,
      options,
      `${operation} (${method} ${path}): ${errorText({ ...facts, field: undefined })}${notes.length > 0 ? ` [${notes.join(", ")}]` : ""}${unclear}`,
    );
    this.operation = operation;
    this.method = method;
    this.path = path;
    this.outcome = outcome;
    this.attempts = attempts;
    if (details.status !== undefined) this.status = details.status;
    if (serverMessage !== undefined) this.serverMessage = serverMessage;
  }

  /** The same with what is known of the request, and what the error's class adds. */
  override toJSON(): ReturnType<GatehouseError["toJSON"]> {
    const facts = Object.entries(this).filter(([name]) => REQUEST_FACTS.includes(name));
    return { ...super.toJSON(), ...JSON.parse(JSON.stringify(Object.fromEntries(facts))) };
  }
}

/** The properties of requests' errors that are part of their JSON. */
const REQUEST_FACTS = [
  ...["operation", "status", "outcome"],
  ...["fields", "expiredAt", "until", "gatewayCode", "retryAfter", "limit"],
];

/** What the class of a request's error says of it. */
interface RequestErrorMore extends ErrorOptions {
  readonly code?: SdkErrorCode;
  readonly field?: FieldPath | undefined;
}

/**
 * Thrown when the server finds the request invalid (400, 415 or 422; rules section 8). When it is valid, but in
 * conflict with an object that exists, a {@link ConflictError} is thrown.
 */
export class ValidationError extends RequestError {
  override readonly name = "ValidationError";
  /** Names of the fields that are at fault, in the wire's spelling, where the server lists them. */
  readonly fields: readonly string[];

  constructor(detail: string, details: RequestErrorDetails, fields: readonly string[] = []) {
    super(detail, details, { code: "validation", field: onlyOne(fields) });
    this.fields = fields;
  }
}

/** The one field at fault; undefined where there are several, or none. */
const onlyOne = (fields: readonly string[]) => (fields.length === 1 ? fields : undefined);

/**
 * Thrown when a request needs a credential and has none, or one that is wrong or has expired (401). When the credential
 * is right but may not do this, a {@link PermissionError} is thrown; when too many wrong passwords were sent, a
 * {@link LockoutError}.
 */
export class AuthenticationError extends RequestError {
  override readonly name = "AuthenticationError";
  /** When the token expired, if that is why. */
  readonly expiredAt?: Date;
  readonly #mfaToken?: string;

  constructor(
    detail: string,
    details: RequestErrorDetails,
    more: { readonly expiredAt?: Date; readonly mfaToken?: string; readonly cause?: unknown } = {},
  ) {
    super(detail, details, { code: "authentication", ...("cause" in more && { cause: more.cause }) });
    if (more.expiredAt) this.expiredAt = more.expiredAt;
    if (more.mfaToken) this.#mfaToken = more.mfaToken;
  }

  /**
   * Present when the password was right and the user has MFA: the operation `authMfa` takes it together with the code
   * (rules section 10). Printing the error does not show it.
   */
  get mfaToken(): string | undefined {
    return this.#mfaToken;
  }
}

/**
 * Thrown when the credential is right but may not do this (403), when a limit or the billing forbids it (402), and,
 * before anything is sent, when an API key would be used for a namespace that is not known to be its own. When the
 * credential itself is wrong, an {@link AuthenticationError} is thrown.
 */
export class PermissionError extends RequestError {
  override readonly name = "PermissionError";

  constructor(detail: string, details: RequestErrorDetails) {
    super(detail, details, { code: "permission_denied" });
  }
}

/**
 * Thrown when there is no such object in the credential's namespace: a 404 in the service's form, `{message}` or
 * without a body (rules section 8). Any other 404, such as a proxy's page, is a {@link ProtocolError}.
 */
export class NotFoundError extends RequestError {
  override readonly name = "NotFoundError";

  constructor(detail: string, details: RequestErrorDetails) {
    super(detail, details, { code: "not_found" });
  }
}

/**
 * Thrown when the object, or one with the same name, exists already (409). When the object is not as `ifMatch` says, a
 * {@link PreconditionFailedError} is thrown.
 */
export class ConflictError extends RequestError {
  override readonly name = "ConflictError";
  /** Names of the fields that are taken, in the wire's spelling, where the server lists them. */
  readonly fields: readonly string[];

  constructor(detail: string, details: RequestErrorDetails, fields: readonly string[] = []) {
    super(detail, details, { code: "conflict", field: onlyOne(fields) });
    this.fields = fields;
  }
}

/**
 * Thrown when the object is no longer as `ifMatch` says (412): read it again before changing it. When an object is in
 * the way of a new one, a {@link ConflictError} is thrown.
 */
export class PreconditionFailedError extends RequestError {
  override readonly name = "PreconditionFailedError";

  constructor(detail: string, details: RequestErrorDetails) {
    super(detail, details, { code: "precondition_failed" });
  }
}

/**
 * Thrown when a login is refused because too many wrong passwords came before it (429; rules section 9). The client
 * never repeats it. When a single password is wrong, an {@link AuthenticationError} is thrown; when there are too many
 * requests of any kind, a {@link RateLimitError}.
 */
export class LockoutError extends RequestError {
  override readonly name = "LockoutError";
  /** When the lock ends, if the server said so. */
  readonly until?: Date;

  constructor(detail: string, details: RequestErrorDetails, until?: Date) {
    super(detail, details, { code: "locked_out" });
    if (until) this.until = until;
  }
}

/**
 * Thrown when the payment gateway of a cloud instance refuses a payment or fails (424; rules section 18). When
 * something is not allowed because it was not paid for, a {@link PermissionError} is thrown.
 */
export class PaymentError extends RequestError {
  override readonly name = "PaymentError";
  /** What went wrong, as the gateway calls it: `card_declined`, `processing_error`, … */
  readonly gatewayCode?: string;

  constructor(detail: string, details: RequestErrorDetails, gatewayCode?: string) {
    super(detail, details, { code: "payment" });
    if (gatewayCode !== undefined) this.gatewayCode = gatewayCode;
  }
}

/** The base of the errors of answers that may say when to come back. */
export class RetryAfterError extends RequestError {
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfter?: number;

  constructor(detail: string, details: RequestErrorDetails, code: SdkErrorCode, retryAfter?: number) {
    const wait = retryAfter === undefined ? "" : `; the service asks to wait ${seconds(retryAfter)} s`;
    super(`${detail}${wait}`, details, { code });
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
  }
}

const seconds = (ms: number) => Math.ceil(ms / 1000);

/**
 * Thrown when too many requests came (429), after the client repeated the request for as long as its retry policy allows;
 * a login is never repeated. When the service asks to wait longer than that, it is thrown at once. When wrong passwords
 * are the reason, a {@link LockoutError} is thrown.
 */
export class RateLimitError extends RetryAfterError {
  override readonly name = "RateLimitError";

  constructor(detail: string, details: RequestErrorDetails, retryAfter?: number) {
    super(detail, details, "rate_limited", retryAfter);
  }
}

/**
 * Thrown when the server fails (500 and up). When it does not answer at all, a {@link TransportError} is thrown; when
 * its answer cannot be understood, a {@link ProtocolError}.
 */
export class ServerError extends RetryAfterError {
  override readonly name = "ServerError";

  constructor(detail: string, details: RequestErrorDetails, retryAfter?: number) {
    super(detail, details, "server_failed", retryAfter);
  }
}

/**
 * Why there is no answer:
 * - `unreachable`: there is no connection, so nothing was sent
 * - `untrusted`: the other side speaks no TLS, or its certificate is not trusted; nothing was sent
 * - `interrupted`: the connection broke
 * - `timeout`: no complete answer came in time
 * - `aborted`: the caller's signal ended the call
 */
export type TransportFailure = "unreachable" | "untrusted" | "interrupted" | "timeout" | "aborted";

/**
 * Thrown when no complete answer came; `reason` says why. When an answer came that is not one of this service, a
 * {@link ProtocolError} is thrown.
 */
export class TransportError extends RequestError {
  override readonly name = "TransportError";
  readonly reason: TransportFailure;

  constructor(detail: string, details: RequestErrorDetails, reason: TransportFailure, cause: unknown) {
    super(detail, details, { code: reason, cause });
    this.reason = reason;
  }
}

/**
 * Thrown when an answer came that this service does not give: a redirect, no JSON, the wrong kind of JSON, a 404 in
 * another form, or more bytes or levels than allowed. Often the URL is that of something else. When the service says that an
 * object is not there, a {@link NotFoundError} is thrown.
 */
export class ProtocolError extends RequestError {
  override readonly name = "ProtocolError";
  /** The limit that the answer exceeds, if that is why. */
  readonly limit?: AnswerLimit;

  constructor(
    detail: string,
    details: RequestErrorDetails,
    more: { readonly cause?: unknown; readonly limit?: AnswerLimit | undefined } = {},
  ) {
    super(detail, details, { code: "protocol", ...("cause" in more && { cause: more.cause }) });
    if (more.limit) this.limit = more.limit;
  }
}

/** A limit of what an answer may be: its size in bytes, or how many levels of arrays and objects it has. */
export interface AnswerLimit {
  readonly kind: "size" | "depth";
  readonly most: number;
}

/** True for a {@link NotFoundError}: the object that was asked for does not exist. */
export function isNotFound(error: unknown): error is NotFoundError {
  return error instanceof NotFoundError;
}
