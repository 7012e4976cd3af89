import type { LockoutName } from "./contract/operation.ts";
import type { SdkErrorCode } from "./errorCodes.ts";
import { sentence, withPeriod } from "./sentence.ts";

export { addHelpEnd, type HelpEnd, reportUsage, type SuggestingCommand } from "./commandLine.ts";
export { type ErrorKind, type SdkErrorCode, sdkErrors } from "./errorCodes.ts";
export { type FileFailure, fileFailure, fileFailureText } from "./fileErrors.ts";
export { printableIssuer } from "./issuer.ts";
export { maskSecrets, withoutControls } from "./mask.ts";
export { capitalized, sentence, withPeriod } from "./sentence.ts";
export {
  clientVariables,
  misspelledVariables,
  type UnknownVariable,
  unknownText,
  unknownVariables,
} from "./variables.ts";

/** The path of a value in nested data: names of properties and indexes of array items, outermost first. */
export type FieldPath = readonly (string | number)[];

/**
 * The structured fields of an error. The text of the error is created from these fields, so programs need not parse the
 * text.
 */
export interface ErrorFacts {
  /** Code of the error. docs/reference/errors.md lists all codes, which do not change in later releases. */
  readonly code: string;
  /** The kind of the affected object, such as `FirewallRule`. */
  readonly resource?: string | undefined;
  /** The setting, flag or input that causes the error. */
  readonly field?: FieldPath | undefined;
  /** The value of the field, unless the value may be secret. */
  readonly value?: unknown;
  /**
   * The cause of the error. `resource` and `field` are separate fields and not repeated here. If `field` is set, a
   * detail that begins with a lower-case letter is a predicate of the field (`is not set`). Any other detail is a
   * sentence of its own.
   */
  readonly detail: string;
  /** Instructions for the user, as an imperative sentence. */
  readonly remedy?: string | undefined;
  /** Value of the response header `X-Request-ID`. */
  readonly requestId?: string | undefined;
}

/**
 * Returns the text of an error: the cause as a sentence, then the remedy as a sentence. The cause begins with the
 * resource and the field, if they are set: `GATEHOUSE_URL is not set. Set it to …`, `DeviceTags.device: The namespace
 * has no device "web". Use …`.
 */
export function errorText({ resource, field = [], detail, remedy }: ErrorFacts): string {
  const place = [...(resource === undefined ? [] : [resource]), ...field].join(".");
  const isPredicate = field.length > 0 && /^\p{Ll}/u.test(detail);
  const cause = isPredicate ? withPeriod(`${place} ${detail}`) : sentence(detail);
  const text = isPredicate || place === "" ? cause : `${place}: ${cause}`;
  return remedy === undefined ? text : `${text} ${sentence(remedy)}`;
}

/** The base class of all errors that the packages of this project throw on purpose. */
export class GatehouseError extends Error implements ErrorFacts {
  override readonly name: string = "GatehouseError";
  readonly code: string;
  // The fields use `declare`, so that an error has only the fields that the constructor sets. Otherwise Node.js would
  // print each unset field as `undefined`.
  declare readonly resource?: string;
  declare readonly field?: FieldPath;
  declare readonly value?: unknown;
  readonly detail: string;
  declare readonly remedy?: string;
  declare readonly requestId?: string;

  /**
   * Creates an error from its facts.
   * @param text the text of the error. Default: {@link errorText} of the facts
   */
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

  /** Returns the error in the JSON form that the commands print, without `cause` and `stack`. */
  toJSON(): ErrorFacts & { readonly message: string } {
    const { code, message, resource, field, value, detail, remedy, requestId } = this;
    const facts = { code, message, resource, field, value, detail, remedy, requestId };
    return JSON.parse(JSON.stringify(facts)) as ReturnType<GatehouseError["toJSON"]>;
  }
}

/** Returns the text of an error followed by its code, as the commands print errors. */
export const withCode = (text: string, { code }: Pick<ErrorFacts, "code">): string => `${text} [${code}]`;

/** Returns the text of any error. The text of a {@link GatehouseError} includes its code, as in {@link withCode}. */
export function printedError(error: unknown): string {
  if (error instanceof GatehouseError) return withCode(error.message, error);
  return error instanceof Error ? error.message : String(error);
}

/** Properties of an error in addition to its detail. */
export interface ErrorMore extends ErrorOptions {
  readonly field?: FieldPath | undefined;
  readonly value?: unknown;
  readonly remedy?: string | undefined;
}

/**
 * Thrown when options, environment variables or arguments are missing or wrong, before the client sends a request. If
 * the server rejects a request as invalid, a {@link ValidationError} is thrown.
 */
export class ConfigurationError extends GatehouseError {
  override readonly name: string = "ConfigurationError";

  constructor(detail: string, { field, value, remedy, ...options }: ErrorMore = {}) {
    super({ code: "configuration", detail, field, value, remedy }, options);
  }
}

/**
 * The effect of a failed request on the server:
 * - `none`: no object changed, because the request did not reach the service, was refused, or only reads data or logs
 *   in
 * - `unknown`: the request may have taken effect; read the object before you repeat the request
 * - `done`: the request took effect, but its response cannot be read
 */
export type RequestOutcome = "none" | "unknown" | "done";

/**
 * Data about the sender of a response, which helps users to find a proxy. The data does not prove who sent the
 * response.
 */
export interface AnswerSource {
  readonly status: number;
  /** The response headers `server`, `via` and `content-type`, if the response has them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The facts about a failed request. */
export interface RequestErrorDetails {
  /** Id of the operation, as in the contract. */
  readonly operation: string;
  readonly method: string;
  /** Path of the request with the values of its parameters, without the query. */
  readonly path: string;
  /** HTTP status of the response; absent if no response arrived. */
  readonly status?: number;
  /** Value of the response header `X-Request-ID`, which the server's log also contains. */
  readonly requestId?: string;
  /** Instructions for the user. */
  readonly remedy?: string | undefined;
  /** The message in the server's response, if there is one. */
  readonly serverMessage?: string;
  /**
   * True if the body of the response proves that this project's service sent the response. Otherwise, the sender may be
   * the service, another service or a proxy.
   * @default false
   */
  readonly isFromService?: boolean;
  /** The facts about the sender of the response; absent if no response arrived. */
  readonly source?: AnswerSource;
  readonly outcome: RequestOutcome;
  /** Number of attempts; 0 if the request failed before the first attempt. */
  readonly attempts: number;
}

/**
 * The base class of request errors. The class itself is thrown for a 4xx status that has no subclass. If the client
 * cannot reach the server or the connection breaks, a {@link TransportError} is thrown.
 */
export class RequestError extends GatehouseError implements RequestErrorDetails {
  /** The default code of the errors of a class. The constructor can set a different code. */
  protected static readonly code: SdkErrorCode = "request_refused";
  override readonly name: string = "RequestError";
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly status?: number;
  readonly serverMessage?: string;
  readonly isFromService: boolean;
  readonly source?: AnswerSource;
  readonly outcome: RequestOutcome;
  readonly attempts: number;

  constructor(
    detail: string,
    details: RequestErrorDetails,
    { code, field, ...options }: RequestErrorMore = {},
  ) {
    const { operation, method, path, serverMessage, requestId, attempts, outcome, remedy } = details;
    const notes = [
      `${operation} (${method} ${path})`,
      ...(requestId === undefined ? [] : [`request id ${requestId}`]),
      ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ];
    const facts = {
      code: code ?? new.target.code,
      field,
      detail: serverMessage && !repeatsCause(detail, serverMessage) ? `${detail}: ${serverMessage}` : detail,
      remedy,
      requestId,
    };
    super(facts, options, `${requestText({ ...facts, field: undefined }, outcome)} [${notes.join(", ")}]`);
    this.operation = operation;
    this.method = method;
    this.path = path;
    this.outcome = outcome;
    this.attempts = attempts;
    if (details.status !== undefined) this.status = details.status;
    if (serverMessage !== undefined) this.serverMessage = serverMessage;
    this.isFromService = details.isFromService ?? false;
    if (details.source !== undefined) this.source = details.source;
  }

  /** Returns the error as JSON, including the data of the request and the properties of the subclass. */
  override toJSON(): ReturnType<GatehouseError["toJSON"]> {
    const facts = Object.entries(this).filter(([name]) => REQUEST_FACTS.includes(name));
    return { ...super.toJSON(), ...JSON.parse(JSON.stringify(Object.fromEntries(facts))) };
  }
}

/**
 * The message of a 401 response, which servers send for every kind of credential. The message misleads users of an API
 * key, because an API key is not a JWT.
 */
const ANY_CREDENTIAL = "missing or malformed jwt";

/** True if the server's message only repeats the beginning of the cause, or does not describe the cause. */
function repeatsCause(detail: string, serverMessage: string): boolean {
  const message = serverMessage.toLowerCase().replace(/\.$/, "");
  return detail.toLowerCase().startsWith(message) || message.startsWith(ANY_CREDENTIAL);
}

/** Returns the text of an error, with a warning if the request may have taken effect. */
function requestText(facts: ErrorFacts, outcome: RequestOutcome): string {
  const text = errorText(facts);
  if (outcome !== "unknown") return text;
  return `${text} The request may have taken effect. Read the object before you repeat it.`;
}

/** The fields that the JSON form of a request error contains in addition to the fields of every error. */
const REQUEST_FACTS = [
  "operation",
  "status",
  "outcome",
  "fields",
  "expiredAt",
  "until",
  "gatewayCode",
  "retryAfter",
  "limit",
  "lockout",
];

/** Properties of a request error that depend on its class. */
interface RequestErrorMore extends ErrorOptions {
  /** @default the code of the class */
  readonly code?: SdkErrorCode;
  readonly field?: FieldPath | undefined;
}

/**
 * Thrown when the server rejects the request as invalid (400, 415 or 422; rules section 8). If the request is valid
 * but conflicts with an existing object, a {@link ConflictError} is thrown.
 */
export class ValidationError extends RequestError {
  protected static override readonly code = "validation";
  override readonly name = "ValidationError";
  /** Names of the invalid fields as in the API's JSON, if the server lists them. */
  readonly fields: readonly string[];

  constructor(detail: string, details: RequestErrorDetails, fields: readonly string[] = []) {
    super(detail, details, { field: onlyOne(fields) });
    this.fields = fields;
  }
}

/** The invalid field; undefined if the server lists no field or several fields. */
const onlyOne = (fields: readonly string[]) => (fields.length === 1 ? fields : undefined);

/**
 * Thrown when a request requires a credential and the credential is missing, wrong or expired (401). If the
 * credential is valid but lacks the permission, a {@link PermissionError} is thrown. After too many wrong passwords,
 * a {@link LockoutError} is thrown.
 */
export class AuthenticationError extends RequestError {
  protected static override readonly code = "authentication";
  override readonly name = "AuthenticationError";
  /** The time at which the token expired; undefined if the error has a different cause. */
  readonly expiredAt?: Date;
  readonly #mfaToken?: string;

  constructor(
    detail: string,
    details: RequestErrorDetails,
    more: { readonly expiredAt?: Date; readonly mfaToken?: string; readonly cause?: unknown } = {},
  ) {
    super(detail, details, "cause" in more ? { cause: more.cause } : {});
    if (more.expiredAt) this.expiredAt = more.expiredAt;
    if (more.mfaToken) this.#mfaToken = more.mfaToken;
  }

  /**
   * Token for the second step of a login: present if the password was right and the user has MFA. The operation
   * `authMfa` requires this token and the TOTP code (rules section 10). The printed error does not contain the token.
   */
  get mfaToken(): string | undefined {
    return this.#mfaToken;
  }
}

/**
 * Thrown when the credential lacks the permission (403), or when a limit or the billing forbids the request (402). Also
 * thrown, before the client sends the call, if the client cannot confirm that an API key belongs to the namespace of
 * the call. If the credential itself is wrong, an {@link AuthenticationError} is thrown.
 */
export class PermissionError extends RequestError {
  protected static override readonly code = "permission_denied";
  override readonly name = "PermissionError";
}

/**
 * Thrown when the object does not exist in the credential's namespace. The response has the status 404 and either the
 * service's body `{message}` or no body (rules section 8). For a 404 with a different body, such as a proxy's page, a
 * {@link ProtocolError} is thrown.
 */
export class NotFoundError extends RequestError {
  protected static override readonly code = "not_found";
  override readonly name = "NotFoundError";
}

/**
 * Thrown when the object, or an object with the same name, already exists (409). If the object does not match
 * `ifMatch`, a {@link PreconditionFailedError} is thrown.
 */
export class ConflictError extends RequestError {
  protected static override readonly code = "conflict";
  override readonly name = "ConflictError";
  /** Names of the fields whose values are already in use, as in the API's JSON, if the server lists them. */
  readonly fields: readonly string[];

  constructor(detail: string, details: RequestErrorDetails, fields: readonly string[] = []) {
    super(detail, details, { field: onlyOne(fields) });
    this.fields = fields;
  }
}

/**
 * Thrown when the lockout guard refuses a write (409), because the write locks out the caller or the administrators. See
 * {@link ClientCore.guarding}. After too many wrong passwords, a {@link LockoutError} is thrown.
 */
export class LockoutGuardError extends RequestError {
  protected static override readonly code = "lockout_guard";
  override readonly name = "LockoutGuardError";
  /** The kind of lockout. Undefined if the service sent a kind that this version of the SDK does not support. */
  readonly lockout?: LockoutName;

  constructor(detail: string, details: RequestErrorDetails, lockout?: LockoutName) {
    super(detail, details);
    if (lockout !== undefined) this.lockout = lockout;
  }
}

/**
 * Thrown when the object no longer matches `ifMatch` (412). Read the object again before you change it. If an
 * existing object prevents the creation of a new one, a {@link ConflictError} is thrown.
 */
export class PreconditionFailedError extends RequestError {
  protected static override readonly code = "precondition_failed";
  override readonly name = "PreconditionFailedError";
}

/**
 * Thrown when a login is refused after too many wrong passwords (429; rules section 9). The client never repeats such
 * a login. For a single wrong password, an {@link AuthenticationError} is thrown. For too many requests of any kind,
 * a {@link RateLimitError} is thrown.
 */
export class LockoutError extends RequestError {
  protected static override readonly code = "locked_out";
  override readonly name = "LockoutError";
  /** The time at which the lockout ends, if the server sent it. */
  readonly until?: Date;

  constructor(detail: string, details: RequestErrorDetails, until?: Date) {
    super(detail, details);
    if (until) this.until = until;
  }
}

/**
 * Thrown when the payment gateway of a cloud instance refuses a payment or fails (424; rules section 18). If an
 * action is forbidden because of a missing payment, a {@link PermissionError} is thrown.
 */
export class PaymentError extends RequestError {
  protected static override readonly code = "payment";
  override readonly name = "PaymentError";
  /** The gateway's own error code: `card_declined`, `processing_error`, … */
  readonly gatewayCode?: string;

  constructor(detail: string, details: RequestErrorDetails, gatewayCode?: string) {
    super(detail, details);
    if (gatewayCode !== undefined) this.gatewayCode = gatewayCode;
  }
}

/** The base class of errors for responses that may have a `Retry-After` header. */
export class RetryAfterError extends RequestError {
  /** Time to wait before the next request, in milliseconds; undefined if the server sent no time. */
  readonly retryAfter?: number;

  constructor(detail: string, details: RequestErrorDetails, retryAfter?: number) {
    const wait = retryAfter === undefined ? "" : `; retry after ${seconds(retryAfter)} s`;
    super(`${detail}${wait}`, details);
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
  }
}

const seconds = (ms: number) => Math.ceil(ms / 1000);

/**
 * Thrown when the server received too many requests (429). The client first repeats the request within the limits of
 * its retry policy, but never repeats a login. If the service requests a longer wait than the policy allows, the error
 * is thrown immediately. After too many wrong passwords, a {@link LockoutError} is thrown.
 */
export class RateLimitError extends RetryAfterError {
  protected static override readonly code = "rate_limited";
  override readonly name = "RateLimitError";
}

/**
 * Thrown when the server fails (status 500 or higher). If the server sends no response, a {@link TransportError} is
 * thrown. If the client cannot parse the response, a {@link ProtocolError} is thrown.
 */
export class ServerError extends RetryAfterError {
  protected static override readonly code = "server_failed";
  override readonly name = "ServerError";
}

/**
 * The reason why there is no response:
 * - `unreachable`: there is no connection, so nothing was sent
 * - `proxy_refused`: the proxy refuses the request, so nothing was sent to the service
 * - `untrusted`: the server does not use TLS, or its certificate is not trusted; nothing was sent
 * - `interrupted`: the connection broke
 * - `timeout`: no complete response arrived in time
 * - `aborted`: the caller's signal ended the call
 */
export type TransportFailure =
  | "unreachable"
  | "proxy_refused"
  | "untrusted"
  | "interrupted"
  | "timeout"
  | "aborted";

/**
 * Thrown when no complete response arrived; `reason` contains the cause. If the response does not come from the
 * service, a {@link ProtocolError} is thrown.
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
 * Thrown when the response does not come from the service, or is too large: a redirect, a body that is not JSON, an
 * unexpected type of JSON, a 404 with an unexpected body, or more bytes or nested levels than allowed. In many cases,
 * the configured URL belongs to a different service. If the service reports that an object does not exist, a {@link
 * NotFoundError} is thrown.
 */
export class ProtocolError extends RequestError {
  protected static override readonly code = "protocol";
  override readonly name = "ProtocolError";
  /** The limit that the response exceeds; undefined if the error has a different cause. */
  readonly limit?: AnswerLimit;

  constructor(
    detail: string,
    details: RequestErrorDetails,
    more: { readonly cause?: unknown; readonly limit?: AnswerLimit | undefined } = {},
  ) {
    super(detail, details, "cause" in more ? { cause: more.cause } : {});
    if (more.limit) this.limit = more.limit;
  }
}

/** A limit of a response: the size in bytes, or the number of nested levels of arrays and objects. */
export interface AnswerLimit {
  readonly kind: "size" | "depth";
  readonly most: number;
}

/** True for a {@link NotFoundError}: the requested object does not exist. */
export function isNotFound(error: unknown): error is NotFoundError {
  return error instanceof NotFoundError;
}
