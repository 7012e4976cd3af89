import { jsonKind, requiredKeys } from "./case.ts";
import {
  codeOf,
  connectionFailureOf,
  type Failure,
  foreignGreeting,
  NO_TLS,
  placeOf,
  unreachable,
  untrusted,
} from "./connectionFailures.ts";
import {
  JSON_TYPE,
  LOCKOUT_GUARD,
  LOCKOUTS,
  type LockoutName,
  type Operation,
  SERVICE_CODES,
} from "./contract/index.ts";
import { type Caller, expiredAt } from "./credentials.ts";
import { isForwarded } from "./dispatcher.ts";
import {
  type AnswerLimit,
  type AnswerSource,
  AuthenticationError,
  ConfigurationError,
  ConflictError,
  type GatehouseError,
  LockoutError,
  LockoutGuardError,
  maskSecrets,
  NotFoundError,
  PaymentError,
  PermissionError,
  PreconditionFailedError,
  ProtocolError,
  RateLimitError,
  RequestError,
  type RequestErrorDetails,
  type RequestOutcome,
  ServerError,
  TransportError,
  type TransportFailure,
  ValidationError,
  withoutControls,
} from "./errors.ts";
import { JsonDepthError, parseJson } from "./json.ts";
import type { HttpProxy } from "./proxies.ts";
import { ProxyError } from "./proxyError.ts";
import { LOGIN_OPERATIONS, parseRetryAfter } from "./retry.ts";

/** Response headers by lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string>>;

/** An HTTP response whose body has not been parsed. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly text: string;
}

/** Facts about a request and about the client that sent it. The error for the response is created from these facts. */
export interface AnswerContext {
  readonly operation: Operation;
  readonly path: string;
  /** Address of the service, without credentials or query. */
  readonly address: string;
  /** The proxy that the requests use. Absent if the client connects directly. */
  readonly proxy?: HttpProxy | undefined;
  readonly attempts: number;
  /** True if an earlier attempt of the request got no response, so that the request may already have taken effect. */
  readonly unclear: boolean;
  readonly now: number;
  readonly token?: string;
  readonly caller: Caller;
  /** True after the client has reached a server at the address for the first time. */
  readonly isReached: boolean;
  /** True if the service has accepted the client's API key. */
  readonly isKeyAccepted: boolean;
  readonly maxResponseSize: number;
  /** Secret values. The error masks them in the server's message. */
  readonly secrets: readonly string[];
}

const MESSAGE_LENGTH = 500;

/**
 * Prepares a message from the server for use in an error. Truncates the message, masks secrets, and replaces control
 * characters, because terminals would interpret them.
 */
function clean(message: string, secrets: readonly string[]): string {
  const text = withoutControls(maskSecrets(message, secrets)).trim();
  return text.length > MESSAGE_LENGTH ? `${text.slice(0, MESSAGE_LENGTH)}…` : text;
}

/** Parses a body as JSON. Returns undefined for a body that is empty or not JSON, such as a proxy's HTML page. */
function jsonIn({ text }: Pick<RawAnswer, "text">): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads the fields of an error body: `{message}`, `{message, fields}`, `{message, code}` or an array of field names.
 * Returns no fields for a body that is empty or not JSON. The error then depends only on the HTTP status.
 */
function readErrorBody(answer: RawAnswer): { message?: string; code?: string; fields: string[] } {
  const body = jsonIn(answer);
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

/** Returns true for a body that is not JSON, such as a proxy's HTML page. Servers send an empty body or JSON. */
const isForeign = (answer: RawAnswer): boolean => answer.text.trim() !== "" && jsonIn(answer) === undefined;

const ofProxy = (error: ProxyError, details: RequestErrorDetails): TransportError =>
  new TransportError(error.detail, { ...details, remedy: error.remedy }, error.reason, error);

const CODES: ReadonlySet<unknown> = new Set(Object.values(SERVICE_CODES));

/**
 * Returns true if the body of a response proves that this project's service sent the response: the body has a revision,
 * or a code that only this service sends. Headers prove nothing, because proxies add them.
 */
export function isFromService({ text }: Pick<RawAnswer, "text">): boolean {
  if (!text.includes('"revision"') && !text.includes('"code"')) return false;
  const body = jsonIn({ text });
  if (typeof body !== "object" || body === null) return false;
  const { revision, code } = body as { readonly revision?: unknown; readonly code?: unknown };
  return (typeof revision === "string" && revision !== "") || CODES.has(code);
}

/** Returns the status and headers that help to identify the sender of a response. */
export function sourceOf({ status, headers }: RawAnswer, secrets: readonly string[]): AnswerSource {
  const named = (["server", "via", "content-type"] as const).flatMap((name) => {
    const value = clean(headers[name] ?? "", secrets);
    return value === "" ? [] : [[name, value] as const];
  });
  return { status, headers: Object.fromEntries(named) };
}

const RIGHT_URL = "check the URL of the service";

/** Matches the message that servers with TLS send to a client that connects without TLS. */
const PLAIN_HTTP = /HTTP request (was sent )?to (an )?HTTPS (port|server)/i;

/** Operations that create or renew a session and do not change any object. */
const SESSION_OPERATIONS: ReadonlySet<string> = new Set([
  ...LOGIN_OPERATIONS,
  "challengeDevice",
  "exchangeWorkloadToken",
  "renewWorkloadSession",
]);

/** Returns true for an operation that can change an object. */
const changes = ({ id, method }: Operation): boolean => method !== "GET" && !SESSION_OPERATIONS.has(id);

const requestOf = ({ operation: { id, method }, path, attempts }: AnswerContext) =>
  ({ operation: id, method, path, attempts }) as const;

function detailsOf(context: AnswerContext, answer: RawAnswer, outcome: RequestOutcome) {
  const requestId = answer.headers["x-request-id"];
  return {
    ...requestOf(context),
    status: answer.status,
    outcome,
    isFromService: isFromService(answer),
    source: sourceOf(answer, context.secrets),
    ...(requestId && { requestId: clean(requestId, context.secrets) }),
  };
}

/** Returns the error for a response with an error status. */
export function errorOf(context: AnswerContext, answer: RawAnswer): RequestError {
  const { operation } = context;
  const { status, headers } = answer;
  const body = readErrorBody(answer);
  const isChange = changes(operation);
  const unsure = isChange && (context.unclear || status >= 500);
  const message = body.message === undefined ? "" : clean(body.message, context.secrets);
  const details: RequestErrorDetails = {
    ...detailsOf(context, answer, unsure ? "unknown" : "none"),
    ...(message !== "" && { serverMessage: message }),
  };
  // A proxy may have replaced the service's response, so the service may have performed the request.
  const foreign = { outcome: isChange ? "unknown" : "none", remedy: RIGHT_URL } as const;
  const fields = body.fields.map((field) => clean(field, context.secrets));
  const retryAfter = parseRetryAfter(headers["retry-after"], context.now);
  // A proxy that forwards requests can respond instead of the service.
  const { address, proxy } = context;
  const forwarder = proxy && isForwarded(new URL(address), proxy) ? proxy : undefined;
  if (forwarder && (status === 407 || (status === 403 && isForeign(answer)))) {
    return ofProxy(new ProxyError(forwarder, address, status), { ...details, outcome: "none" });
  }
  switch (status) {
    case 400:
    case 415:
    case 422:
      return PLAIN_HTTP.test(answer.text)
        ? new ValidationError(`${placeOf(context.address)} accepts only TLS connections (${status})`, {
            ...details,
            remedy: `set the URL to ${otherScheme(context.address)}`,
          })
        : new ValidationError(`the server rejected the request as invalid (${status})`, details, fields);
    case 401:
      // If an operation requires a user, some servers respond to an API key with 401 instead of 403. The response
      // indicates a missing permission only if the server has already accepted the API key.
      return context.isKeyAccepted && requiresUser(context)
        ? new PermissionError("permission denied (401)", { ...details, remedy: USE_USER })
        : authenticationError(context, answer, details);
    case 402:
      return new PermissionError("a limit or the billing forbids the request (402)", details);
    case 403:
      return new PermissionError("permission denied (403)", {
        ...details,
        remedy: requiresUser(context) ? USE_USER : undefined,
      });
    case 404:
      // A NotFoundError makes callers treat the object as deleted. A proxy's error page must not have that effect.
      return answer.text.trim() === "" || body.message !== undefined
        ? notFoundError(context, details)
        : new ProtocolError("the 404 response does not come from the service", { ...details, ...foreign });
    case 409:
      if (headers[LOCKOUT_GUARD.toLowerCase()] !== undefined) return guardError(headers, details);
      return new ConflictError("conflicts with an existing object (409)", details, fields);
    case 412:
      return new PreconditionFailedError("the object has changed since it was read (412)", details);
    case 424: {
      const code = body.code === undefined ? undefined : clean(body.code, context.secrets);
      return new PaymentError("the payment gateway refused the payment or failed (424)", details, code);
    }
    case 429:
      // When a request exceeds a rate limit, the server sends `Retry-After`. When a login is locked, the server sends
      // the time at which the lockout ends.
      return LOGIN_OPERATIONS.has(operation.id) &&
        (headers["x-account-lockout"] !== undefined || retryAfter === undefined)
        ? lockoutError(headers, details)
        : new RateLimitError("too many requests (429)", details, retryAfter);
    default:
      if (status >= 500) {
        const sender = forwarder ? `the server, or the proxy ${forwarder.address},` : "the server";
        return new ServerError(`${sender} failed (${status})`, details, retryAfter);
      }
      if (status < 400) {
        return new ProtocolError(`unexpected status ${status}${redirectOf(headers)}`, {
          ...details,
          ...foreign,
        });
      }
      return new RequestError(`refused (${status})`, details);
  }
}

function notFoundError({ operation, path, address }: AnswerContext, details: RequestErrorDetails) {
  if (operation.id === "login") {
    const remedy = "check the URL of the service, and omit API paths such as /api";
    return new NotFoundError(`${address} has no login endpoint (404)`, { ...details, remedy });
  }
  if (operation.id !== "getNamespaceToken") return new NotFoundError("not found (404)", details);
  const remedy = "check the id of the namespace; `gatehouse namespace list` prints the ids";
  const tenant = path.split("/").at(-1) ?? "";
  return new NotFoundError(`no access to the namespace ${tenant} (404)`, { ...details, remedy });
}

const SECRETS_OF_LOGINS: Readonly<Record<string, string>> = {
  authMfa: "MFA token or code",
  recoverMfa: "user or recovery code",
  resetMfa: "code",
};

function authenticationError(context: AnswerContext, answer: RawAnswer, details: RequestErrorDetails) {
  const mfaToken = answer.headers["x-mfa-token"];
  if (mfaToken) {
    return new AuthenticationError("the user has MFA, so the login also needs a code (401)", details, {
      mfaToken,
    });
  }
  const { username, settings } = context.caller;
  const remedy = settings && `check ${settings.join(" and ")}`;
  const user = username === undefined ? "" : ` for the user ${JSON.stringify(username)}`;
  if (LOGIN_OPERATIONS.has(context.operation.id)) {
    const what = SECRETS_OF_LOGINS[context.operation.id] ?? "user name or password";
    const cause = `wrong ${what} at ${context.address}${user} (401)`;
    return new AuthenticationError(cause, { ...details, remedy });
  }
  if (context.operation.scope === "public") {
    return new AuthenticationError("the token, code or signature in the request is not valid (401)", details);
  }
  const end = context.token === undefined ? undefined : expiredAt(context.token, context.now);
  if (end) {
    return new AuthenticationError(
      `the token expired at ${end.toISOString()} (401)`,
      {
        ...details,
        remedy: `log in again or set ${settings?.join(" and ") ?? "GATEHOUSE_TOKEN"} to a new token`,
      },
      { expiredAt: end },
    );
  }
  if (requiresUser(context)) {
    const detail = "the API key is not valid, or the request requires a user (401)";
    return new AuthenticationError(detail, { ...details, remedy: USE_USER });
  }
  const kind = context.token === undefined ? "API key" : "token";
  const detail = `the ${kind} is not valid at ${context.address}${user}, or has expired (401)`;
  return new AuthenticationError(detail, { ...details, remedy });
}

const USE_USER = "use a user's credential, not an API key";

/** Returns true if a request with an API key calls an operation that only users may call. */
const requiresUser = ({ operation, token }: AnswerContext): boolean =>
  token === undefined && operation.scope !== "public" && !operation.auth.includes("apikey");

function lockoutError(headers: ResponseHeaders, details: RequestErrorDetails): LockoutError {
  const seconds = Number(headers["x-account-lockout"]);
  const until = seconds > 0 ? new Date(seconds * 1000) : undefined;
  const valid = until && !Number.isNaN(until.getTime()) ? until : undefined;
  const end = valid ? ` until ${valid.toISOString()}` : "";
  return new LockoutError(`locked out${end} after too many wrong passwords (429)`, details, valid);
}

function guardError(headers: ResponseHeaders, details: RequestErrorDetails): LockoutGuardError {
  const name = headers[LOCKOUT_GUARD.toLowerCase()] ?? "";
  const lockout = Object.hasOwn(LOCKOUTS, name) ? (name as LockoutName) : undefined;
  return new LockoutGuardError("the lockout guard refuses the change (409)", details, lockout);
}

/**
 * Returns the scheme and host of a redirect's target, for an error message. Omits the path and query, because they may
 * contain secrets.
 */
function redirectOf(headers: ResponseHeaders): string {
  const location = headers.location;
  if (!location || !URL.canParse(location)) return "";
  const { protocol, host } = new URL(location);
  return `, a redirect to ${protocol}//${host}`;
}

/**
 * True for an operation that returns an object of a namespace. False for an operation that returns a session or
 * information about the service.
 */
const returnsObject = ({ object, method, scope }: Operation): boolean =>
  object !== null || (method !== "GET" && scope === "namespace");

/**
 * Parses the body of a successful response.
 * @throws ProtocolError when the body is not JSON, when the contract requires an array and the body is an object (or
 *   the reverse), or when most required keys of the object are missing. A proxy may have sent such a body, so the
 *   effect of a write is unknown
 */
export function bodyOf(context: AnswerContext, answer: RawAnswer): unknown {
  const { operation } = context;
  const schema = operation.success.body;
  if (!schema || (answer.text === "" && operation.success.mayBeEmpty)) return undefined;
  if (operation.success.mediaType !== JSON_TYPE) return answer.text;
  const fail = (detail: string, limit?: AnswerLimit) => {
    const outcome = !changes(operation) ? "none" : limit ? "done" : "unknown";
    const details = { ...detailsOf(context, answer, outcome), remedy: RIGHT_URL } as const;
    return new ProtocolError(detail, details, limit && { limit });
  };
  let body: unknown;
  try {
    body = parseJson(answer.text);
  } catch (error) {
    if (error instanceof JsonDepthError) {
      const { limit } = error;
      throw fail(`the response is nested deeper than ${limit} levels`, { kind: "depth", most: limit });
    }
    // The error has no `cause`: the parser's error quotes the body, which may contain a secret.
    const type = clean(answer.headers["content-type"] ?? "none", context.secrets);
    throw fail(`the response is ${answer.text === "" ? "empty" : `not JSON (content type ${type})`}`);
  }
  const kind = body === null ? "null" : Array.isArray(body) ? "array" : typeof body;
  const expected = jsonKind(schema);
  if (expected !== "any" && kind !== expected) {
    throw fail(`the response is ${kind}, not ${expected}`);
  }
  const required = returnsObject(operation) ? requiredKeys(schema) : [];
  const missing = required.filter((key) => !Object.hasOwn(Object(body), key));
  // Other servers omit some required keys. JSON from a proxy, such as `{"status":"ok"}`, contains none of them.
  if (missing.length * 2 > required.length) {
    throw fail(`the response lacks most fields of the object: ${missing.join(", ")}`);
  }
  return body;
}

const UNREADABLE = new Set(["UND_ERR_RES_EXCEEDED_MAX_SIZE", "UND_ERR_HEADERS_OVERFLOW"]);
/**
 * Error codes of the HTTP library undici for requests that it did not send. Either the client is closed, or the request
 * is invalid.
 */
const UNSENT = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_CLOSED"]);
function failed(
  reason: Exclude<TransportFailure, "proxy_refused">,
  code: string,
  { address, proxy }: AnswerContext,
): Failure {
  const place = `${placeOf(address)}${proxy ? ` through the proxy ${proxy.address}` : ""}`;
  const named = code === "" ? "" : ` (${code})`;
  switch (reason) {
    case "unreachable": {
      const { detail, ...more } = unreachable(code, address);
      return { detail: `cannot connect to ${place}: ${detail}`, ...more };
    }
    case "untrusted": {
      if (NO_TLS.test(code))
        return {
          detail: `${place} does not use TLS${named}`,
          remedy: `set the URL to ${otherScheme(address)}, or check the port`,
        };
      const { detail, ...more } = untrusted(code);
      return { detail: `the certificate of ${place} ${detail}`, ...more };
    }
    case "interrupted": {
      const detail = `the connection to ${place} broke before the response was complete${named}`;
      if (!address.startsWith("http:")) return { detail };
      return { detail, remedy: `if the service uses TLS, set the URL to ${otherScheme(address)}` };
    }
    case "timeout":
      return { detail: `${place} sent no complete response in time${named}` };
    case "aborted":
      return { detail: `the caller aborted the request${named}` };
  }
}

/**
 * Returns the error for a request that got no complete response.
 * @param how whether the caller aborted the request, and whether the request may have reached the service before the
 *   error
 */
export function failureOf(
  context: AnswerContext,
  error: unknown,
  how: { readonly aborted: boolean; readonly sent: boolean },
): GatehouseError {
  const code = codeOf(error);
  const { operation } = context;
  if (!how.aborted && UNSENT.has(code)) {
    return new ConfigurationError((error as Error).message, { field: [operation.id], cause: error });
  }
  const proxyError = !how.aborted && error instanceof ProxyError ? error : undefined;
  const reason = how.aborted ? "aborted" : connectionFailureOf(error);
  const arrived = how.sent && !proxyError && reason !== "unreachable" && reason !== "untrusted";
  const details: RequestErrorDetails = {
    ...requestOf(context),
    outcome: changes(operation) && (arrived || context.unclear) ? "unknown" : "none",
  };
  if (proxyError) return ofProxy(proxyError, details);
  const greeting = foreignGreeting(error);
  const isSsh = greeting?.startsWith("SSH-") ?? false;
  // Bytes that are not HTTP prove that the port belongs to another service only before the first HTTP response. Later,
  // such bytes may belong to an invalid response from the service.
  if (greeting !== undefined && (isSsh || !context.isReached)) {
    const outcome = context.unclear ? details.outcome : "none";
    return new ProtocolError(
      `${placeOf(context.address)} is ${isSsh ? "an SSH port" : "the port of another service"}, which does not support HTTP`,
      { ...details, outcome, remedy: "set the URL to the HTTP or HTTPS address of the service" },
    );
  }
  if (UNREADABLE.has(code)) {
    const isBody = code === "UND_ERR_RES_EXCEEDED_MAX_SIZE";
    const most = context.maxResponseSize;
    return new ProtocolError(
      isBody
        ? `the response is larger than ${most} bytes (SDK option: maxResponseSize)`
        : "the headers of the response are too large",
      details,
      { cause: error, ...(isBody && { limit: { kind: "size", most } }) },
    );
  }
  const { detail, remedy } = failed(reason, code, context);
  return new TransportError(detail, { ...details, remedy }, reason, error);
}

/**
 * Changes the scheme of an address from http to https, or from https to http. A default port becomes the default port
 * of the new scheme.
 */
function otherScheme(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol === "https:" ? "http:" : "https:"}//${host}`;
}
