import { otherScheme, placeOf } from "./address.ts";
import { jsonKind } from "./case.ts";
import { JSON_TYPE, type Operation } from "./contract/index.ts";
import { expiredAt } from "./credentials.ts";
import {
  type AnswerLimit,
  AuthenticationError,
  ConflictError,
  LockoutError,
  NotFoundError,
  PaymentError,
  PermissionError,
  PreconditionFailedError,
  ProtocolError,
  RateLimitError,
  RequestError,
  type RequestErrorDetails,
  ServerError,
  ValidationError,
} from "./errors.ts";
import { JsonDepthError, parseJson } from "./json.ts";
import { LOGIN_OPERATIONS, parseRetryAfter } from "./retry.ts";

/** Response headers by lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string>>;

/** A complete answer of a server. */
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
  /** The JWT that was sent. */
  readonly token?: string;
  /** Most bytes of an answer. */
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

function detailsOf(context: AnswerContext, answer: RawAnswer, outcome: "none" | "unknown" | "done") {
  const { operation, path, attempts } = context;
  const requestId = answer.headers["x-request-id"];
  return {
    operation: operation.id,
    method: operation.method,
    path,
    attempts,
    status: answer.status,
    outcome,
    ...(requestId && { requestId: clean(requestId, context.secrets) }),
  };
}

/** The error for an answer with a status other than 2xx. */
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

/** What was wrong when a login without a password is answered with 401, by operation. */
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

/**
 * The body of a successful answer: JSON in the wire's spelling, or a text where the contract says so.
 * @throws ProtocolError when it is not JSON, or an object where the contract has a list (or the reverse)
 */
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
