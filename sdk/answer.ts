import { jsonKind } from "./case.ts";
import { JSON_TYPE, type Operation } from "./contract/index.ts";
import { expiredAt } from "./credentials.ts";
import {
  type AnswerLimit,
  AuthenticationError,
  ConfigurationError,
  ConflictError,
  type GatehouseError,
  LockoutError,
  NotFoundError,
  type Outcome,
  PaymentError,
  PermissionError,
  PreconditionFailedError,
  ProtocolError,
  RateLimitError,
  RequestError,
  type RequestErrorDetails,
  ServerError,
  TransportError,
  type TransportFailure,
  ValidationError,
} from "./errors.ts";
import { JsonDepthError, parseJson } from "./json.ts";
import { LOGIN_OPERATIONS, parseRetryAfter } from "./retry.ts";

/** Response headers by lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string>>;

export interface RawAnswer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly text: string;
}

/** What is known of the request that an answer belongs to. */
export interface AnswerContext {
  readonly operation: Operation;
  readonly path: string;
  /** Of the service, without credentials or query. */
  readonly address: string;
  readonly attempts: number;
  /** True when an earlier attempt got no answer, so that it may have taken effect. */
  readonly unclear: boolean;
  readonly now: number;
  readonly token?: string;
  readonly maxResponseSize: number;
  /** Values that the server's message must not bring back. */
  readonly secrets: readonly string[];
}

const MESSAGE_LENGTH = 500;

/** A server's text, shortened, without secrets and without control characters, which terminals would obey. */
function clean(message: string, secrets: readonly string[]): string {
  let text = message;
  // The longest first: a secret may begin like another one.
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
    text = text.replaceAll(secret, "[secret]");
  }
  text = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]+/gu, " ").trim();
  return text.length > MESSAGE_LENGTH ? `${text.slice(0, MESSAGE_LENGTH)}…` : text;
}

/** What an error body says: `{message}`, `{message, fields}`, `{message, code}` or an array of names. */
function readErrorBody(answer: RawAnswer): { message?: string; code?: string; fields: string[] } {
  let body: unknown;
  try {
    body = parseJson(answer.text);
  } catch {
    // A proxy's HTML page or nothing at all: the status alone has to do.
    return { fields: [] };
  }
  if (Array.isArray(body)) {
    const fields = body.filter((item) => typeof item === "string");
    return { fields, ...(fields.length > 0 && { message: fields.join(", ") }) };
  }
  if (typeof body !== "object" || body === null) {
    return { fields: [] };
  }
  const { message, code, fields } = body as { message?: unknown; code?: unknown; fields?: unknown };
  return {
    ...(typeof message === "string" && { message }),
    ...(typeof code === "string" && { code }),
    fields: typeof fields === "object" && fields !== null ? Object.keys(fields) : [],
  };
}

const RIGHT_URL = "is the URL of the service right?";

/** What servers with TLS say to a request without TLS. */
const PLAIN_HTTP = /HTTP request (was sent )?to (an )?HTTPS (port|server)/i;

const requestOf = ({ operation: { id, method }, path, attempts }: AnswerContext) =>
  ({ operation: id, method, path, attempts }) as const;

function detailsOf(context: AnswerContext, answer: RawAnswer, outcome: Outcome) {
  const requestId = answer.headers["x-request-id"];
  return {
    ...requestOf(context),
    status: answer.status,
    outcome,
    ...(requestId && { requestId: clean(requestId, context.secrets) }),
  };
}

export function errorOf(context: AnswerContext, answer: RawAnswer): RequestError {
  const { operation } = context;
  const { status, headers } = answer;
  const body = readErrorBody(answer);
  const reads = operation.method === "GET";
  const unsure = !reads && (context.unclear || status >= 500);
  const message = body.message === undefined ? "" : clean(body.message, context.secrets);
  const details: RequestErrorDetails = {
    ...detailsOf(context, answer, unsure ? "unknown" : "none"),
    ...(message !== "" && { serverMessage: message }),
  };
  const fields = body.fields.map((field) => clean(field, context.secrets));
  const retryAfter = parseRetryAfter(headers["retry-after"], context.now);
  switch (status) {
    case 400:
    case 415:
    case 422:
      return PLAIN_HTTP.test(answer.text)
        ? new ValidationError(`${placeOf(context.address)} answers over TLS only (${status})`, {
            ...details,
            remedy: `is it ${otherScheme(context.address)}?`,
          })
        : new ValidationError(`the server finds the request invalid (${status})`, details, fields);
    case 401:
      return authenticationError(context, answer, details);
    case 402:
      return new PermissionError("refused because of a limit or billing (402)", details);
    case 403:
      return new PermissionError("not allowed (403)", { ...details, remedy: remedyFor403(context) });
    case 404:
      // A NotFoundError makes callers take an object for gone. The error page of a proxy must not do that.
      return answer.text.trim() === "" || body.message !== undefined
        ? new NotFoundError("not found (404)", details)
        : new ProtocolError("a 404 that is not the service's own", { ...details, remedy: RIGHT_URL });
    case 409:
      return new ConflictError("conflicts with what exists (409)", details, fields);
    case 412:
      return new PreconditionFailedError("the object has changed since it was read (412)", details);
    case 424: {
      const code = body.code === undefined ? undefined : clean(body.code, context.secrets);
      return new PaymentError("the payment gateway refused or failed (424)", details, code);
    }
    case 429:
      // A limit of requests says when to come back; a lockout says when it ends.
      return LOGIN_OPERATIONS.has(operation.id) &&
        (headers["x-account-lockout"] !== undefined || retryAfter === undefined)
        ? lockoutError(headers, details)
        : new RateLimitError("too many requests (429)", details, retryAfter);
    default:
      if (status >= 500) {
        return new ServerError(`the server failed (${status})`, details, retryAfter);
      }
      if (status < 400) {
        return new ProtocolError(`unexpected ${status}${redirectOf(headers)}`, {
          ...details,
          remedy: RIGHT_URL,
        });
      }
      return new RequestError(`refused (${status})`, details);
  }
}

const SECRETS_OF_LOGINS: Readonly<Record<string, string>> = {
  authMfa: "MFA token or code",
  recoverMfa: "user or recovery code",
  resetMfa: "code",
};

function authenticationError(context: AnswerContext, answer: RawAnswer, details: RequestErrorDetails) {
  const mfaToken = answer.headers["x-mfa-token"];
  if (mfaToken) {
    return new AuthenticationError("the user has MFA: a code is needed as well (401)", details, { mfaToken });
  }
  if (LOGIN_OPERATIONS.has(context.operation.id)) {
    const what = SECRETS_OF_LOGINS[context.operation.id] ?? "user name or password";
    return new AuthenticationError(`wrong ${what} (401)`, details);
  }
  if (context.operation.scope === "public") {
    return new AuthenticationError("what the request proves itself with is not valid (401)", details);
  }
  const end = context.token === undefined ? undefined : expiredAt(context.token, context.now);
  if (end) {
    return new AuthenticationError(
      `the token expired at ${end.toISOString()} (401)`,
      { ...details, remedy: "log in again or set GATEHOUSE_TOKEN to a new one" },
      { expiredAt: end },
    );
  }
  const kind = context.token === undefined ? "API key" : "token";
  return new AuthenticationError(`the ${kind} is not (or no longer) valid (401)`, details);
}

function remedyFor403({ operation, token }: AnswerContext): string | undefined {
  const userOnly = token === undefined && operation.scope !== "public" && !operation.auth.includes("apikey");
  return userOnly ? "this takes a user's credential, not an API key" : undefined;
}

function lockoutError(headers: ResponseHeaders, details: RequestErrorDetails): LockoutError {
  const seconds = Number(headers["x-account-lockout"]);
  const until = seconds > 0 ? new Date(seconds * 1000) : undefined;
  const valid = until && !Number.isNaN(until.getTime()) ? until : undefined;
  const end = valid ? ` until ${valid.toISOString()}` : "";
  return new LockoutError(`locked out${end} after too many wrong passwords (429)`, details, valid);
}

/** Where a redirect leads, without what may be secret in it. */
function redirectOf(headers: ResponseHeaders): string {
  const location = headers.location;
  if (!location || !URL.canParse(location)) return "";
  const { protocol, host } = new URL(location);
  return `, a redirect to ${protocol}//${host}`;
}

/** @throws ProtocolError when it is not JSON, or an object where the contract has a list (or the reverse) */
export function bodyOf(context: AnswerContext, answer: RawAnswer): unknown {
  const { operation } = context;
  const schema = operation.success.body;
  if (!schema || (answer.text === "" && operation.success.mayBeEmpty)) return undefined;
  if (operation.success.mediaType !== JSON_TYPE) return answer.text;
  const outcome = operation.method === "GET" ? "none" : "done";
  const fail = (detail: string, limit?: AnswerLimit) =>
    new ProtocolError(
      detail,
      { ...detailsOf(context, answer, outcome), remedy: RIGHT_URL },
      limit && { limit },
    );
  let body: unknown;
  try {
    body = parseJson(answer.text);
  } catch (error) {
    if (error instanceof JsonDepthError) {
      const { limit } = error;
      throw fail(`the answer is nested deeper than ${limit} levels`, { kind: "depth", most: limit });
    }
    // The parser's error is not kept as the cause: it quotes the body, which may hold a secret.
    const type = clean(answer.headers["content-type"] ?? "none", context.secrets);
    throw fail(`the answer is ${answer.text === "" ? "empty" : `not JSON (content type ${type})`}`);
  }
  const kind = body === null ? "null" : Array.isArray(body) ? "array" : typeof body;
  const expected = jsonKind(schema);
  if (expected !== "any" && kind !== expected) {
    throw fail(`the answer is ${kind} where ${expected} is expected`);
  }
  return body;
}

const TIMEOUTS = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);
const UNREADABLE = new Set(["UND_ERR_RES_EXCEEDED_MAX_SIZE", "UND_ERR_HEADERS_OVERFLOW"]);
/** The client was closed, or the request has a form that cannot be sent. */
const UNSENT = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_CLOSED"]);
const NO_TLS =
  /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE))$/;
const UNTRUSTED =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA)/;

function property(error: unknown, name: "code" | "syscall" | "message"): string {
  const value =
    typeof error === "object" && error !== null ? (error as Record<string, unknown>)[name] : undefined;
  return typeof value === "string" ? value : "";
}

/** The first error of a connection that was tried at several addresses of one name; the others are alike. */
const firstOf = (error: unknown): unknown =>
  error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;

function reasonOf(error: unknown): TransportFailure {
  const first = firstOf(error);
  const code = property(error, "code") || property(first, "code");
  if (["connect", "getaddrinfo"].includes(property(first, "syscall")) || code === "UND_ERR_CONNECT_TIMEOUT") {
    return "unreachable";
  }
  if (UNTRUSTED.test(code) || NO_TLS.test(code)) return "untrusted";
  const timedOut = error instanceof DOMException && error.name === "TimeoutError";
  return timedOut || TIMEOUTS.has(code) ? "timeout" : "interrupted";
}

interface Failure {
  readonly detail: string;
  readonly remedy?: string;
}

function failed(reason: TransportFailure, code: string, address: string): Failure {
  const place = placeOf(address);
  const named = code === "" ? "" : ` (${code})`;
  switch (reason) {
    case "unreachable": {
      const { detail, ...more } = unreachable(code, address);
      return { detail: `the service can not be reached: ${detail}`, ...more };
    }
    case "untrusted": {
      if (NO_TLS.test(code))
        return { detail: `${place} answers without TLS${named}`, remedy: `is it ${otherScheme(address)}?` };
      const { detail, ...more } = untrusted(code);
      return { detail: `the certificate of ${place} ${detail}`, ...more };
    }
    case "interrupted": {
      const detail = `the connection to ${place} broke before the answer was complete${named}`;
      if (!address.startsWith("http:")) return { detail };
      return { detail, remedy: `if it speaks TLS: is it ${otherScheme(address)}?` };
    }
    case "timeout":
      return { detail: `no complete answer of ${place} in time${named}` };
    case "aborted":
      return { detail: `aborted by the caller${named}` };
  }
}

function unreachable(code: string, address: string): Failure {
  const place = placeOf(address);
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return {
        detail: `the name ${new URL(address).hostname} of ${place} does not resolve (${code})`,
        remedy: "is it written right, and the name server there?",
      };
    case "ECONNREFUSED":
      return {
        detail: `nothing listens at ${place} (${code})`,
        remedy: "does the service run, and at this port?",
      };
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return {
        detail: `${place} does not answer (${code})`,
        remedy: "is the address right, and open to this machine?",
      };
    default:
      return { detail: `no connection to ${place}${code === "" ? "" : ` (${code})`}` };
  }
}

function untrusted(code: string): Failure {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID" || code === "HOSTNAME_MISMATCH")
    return {
      detail: `is for another name (${code})`,
      remedy: "call the service by the name in its certificate",
    };
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return { detail: `is not valid at this time (${code})`, remedy: "is the clock right?" };
  return {
    detail: `is not trusted (${code})`,
    remedy:
      "if it is the right one, name a file with the certificate of its authority (PEM) by GATEHOUSE_CA_FILE (in the sdk: the option ca), or by NODE_EXTRA_CA_CERTS",
  };
}

/**
 * The error for a request that got no complete answer.
 * @param how whether the caller aborted it, and whether it may have been sent before
 */
export function failureOf(
  context: AnswerContext,
  error: unknown,
  how: { readonly aborted: boolean; readonly sent: boolean },
): GatehouseError {
  const code = property(error, "code") || property(firstOf(error), "code");
  const { operation } = context;
  if (!how.aborted && UNSENT.has(code)) {
    return new ConfigurationError(property(error, "message"), { field: [operation.id], cause: error });
  }
  const reason = how.aborted ? "aborted" : reasonOf(error);
  const arrived = how.sent && reason !== "unreachable" && reason !== "untrusted";
  const changes = operation.method !== "GET";
  const details: RequestErrorDetails = {
    ...requestOf(context),
    outcome: changes && (arrived || context.unclear) ? "unknown" : "none",
  };
  if (UNREADABLE.has(code)) {
    const isBody = code === "UND_ERR_RES_EXCEEDED_MAX_SIZE";
    const most = context.maxResponseSize;
    return new ProtocolError(
      isBody
        ? `the answer is larger than ${most} bytes (in the sdk: the option maxResponseSize)`
        : "the headers of the answer are larger than allowed",
      details,
      { cause: error, ...(isBody && { limit: { kind: "size", most } }) },
    );
  }
  const { detail, remedy } = failed(reason, code, context.address);
  return new TransportError(detail, { ...details, remedy }, reason, error);
}

/** Scheme, host and port of an address, the port also where it is the scheme's own. */
export function placeOf(address: string): string {
  const { protocol, hostname, port } = new URL(address);
  return `${protocol}//${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

/** An http address as https, and the other way round. The scheme's own port becomes that of the other scheme. */
function otherScheme(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol === "https:" ? "http:" : "https:"}//${host}`;
}
