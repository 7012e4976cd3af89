import type { FastifyServerOptions } from "fastify";
import { stdSerializers } from "pino";

type LogLevel = "fatal" | "error" | "warn" | "info" | "debug" | "trace" | "silent";

/**
 * Query parameters whose values the log shows. The values of other parameters may be secrets, such as `sign`, `token`
 * or a code.
 */
const harmless = new Set(["page", "per_page", "filter", "sort_by", "order_by", "status", "agent_version"]);

const hidden = "[redacted]";

/** Returns a request's URL for the log. Hides the values of all query parameters that may contain secrets. */
export function loggedUrl(url: string): string {
  const [path = "", query] = url.split("?", 2);
  if (query === undefined) return path;
  const parameters = query.split("&").map((parameter) => {
    const equals = parameter.indexOf("=");
    if (equals === -1) return parameter === "" ? "" : hidden;
    const name = parameter.slice(0, equals);
    return harmless.has(name) ? parameter : `${name}=${hidden}`;
  });
  return `${path}?${parameters.join("&")}`;
}

/**
 * Parts of a request and of a response that contain passwords, codes, tokens and keys. No log line shows these parts.
 */
const CONTENTS = ["headers", "body", "query", "params", "cookies"];

/**
 * Names of fields that always contain a secret, in every object. `code` is not in this list, because errors, exit codes
 * and close codes use this name. An MFA code occurs only in a body.
 */
const SECRET_NAMES = [
  "password",
  "passwordHash",
  "current_password",
  "token",
  "secret",
  "sign",
  "sig",
  "mfaSecret",
  "recovery_code",
  "recovery_codes",
  "main_email_code",
  "recovery_email_code",
  "privateKey",
  "private_key",
  "pem",
  "authorization",
  "cookie",
];

/**
 * Fields of an error that the log shows: codes, and data about files, connections and processes. Other fields of
 * library errors can contain secrets. For example, `input` of an invalid URL contains a password, and `detail` of a
 * PostgreSQL error contains the rejected row.
 */
const ERROR_FIELDS = new Set([
  "code",
  "originalCode",
  "kind",
  "severity",
  "errno",
  "syscall",
  "path",
  "address",
  "host",
  "port",
  "hostname",
  "signal",
  "killed",
  "responseCode",
  "status",
  "statusCode",
  "constraint",
  "table",
  "modelName",
]);

/**
 * Fields of an error that contain the cause of the error. Prisma stores the error of the database adapter in
 * `meta.driverAdapterError.cause`.
 */
const CAUSES = ["cause", "meta", "driverAdapterError"];
/**
 * Maximum number of nested causes that the log shows. The log shows the same number of errors of an aggregate error.
 */
const DEPTH = 6;

type LoggedFacts = Record<string, unknown>;

/** An error in the log. */
interface LoggedError extends LoggedFacts {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
}

/** Returns the fields of an error that the log shows, including the fields of its causes. */
function factsOf(error: object, depth = DEPTH): LoggedFacts {
  const facts: LoggedFacts = {};
  for (const [name, value] of Object.entries(error)) {
    if (!ERROR_FIELDS.has(name)) continue;
    if (typeof value === "string") facts[name] = withoutCredentials(value);
    else if (typeof value === "number" || typeof value === "boolean") facts[name] = value;
  }
  if (depth === 0) return facts;
  for (const name of CAUSES) {
    // The `cause` of an error is not enumerable, so read it explicitly.
    const value = (error as Readonly<Record<string, unknown>>)[name];
    if (typeof value !== "object" || value === null) continue;
    const inner = factsOf(value, depth - 1);
    if (Object.keys(inner).length > 0) facts[name] = inner;
  }
  return facts;
}

/**
 * Hides the user name and the password in each URL of a string, and the passwords in the query of each URL. A password
 * may contain `@`, so the host begins after the last `@` before a `/`. The user name is hidden too, because some
 * services expect a token as the user name.
 */
const withoutCredentials = (text: string): string =>
  text.replace(/:\/\/[^\s/]*@/g, `://${hidden}@`).replace(/([?&](?:ssl)?password=)[^\s&]*/gi, `$1${hidden}`);

const factsOfOne = (error: unknown): LoggedFacts =>
  error instanceof Error ? { message: withoutCredentials(error.message), ...factsOf(error) } : {};

/**
 * Converts an error for the log. The result contains the error's type, message and stack, and the fields that {@link
 * factsOf} returns. The message and the stack include those of the causes. A caught value that is not an error is
 * converted to a string.
 */
function loggedError(caught: unknown): LoggedError {
  const error = caught instanceof Error ? caught : new Error(String(caught));
  const { type, message, stack } = stdSerializers.err(error);
  return {
    type,
    message: withoutCredentials(message),
    stack: withoutCredentials(stack),
    ...factsOf(error),
    // If the connection to a host with several addresses fails, there is one error for each address.
    ...(error instanceof AggregateError && {
      aggregateErrors: error.errors.slice(0, DEPTH).map(factsOfOne),
    }),
  };
}

/** Returns the options of the service's log. The log writes lines of JSON to stdout, and hides secrets. */
export function loggerOptions(level: LogLevel): Extract<FastifyServerOptions["logger"], object> {
  return {
    level,
    redact: {
      paths: [
        ...CONTENTS.flatMap((name) => [name, `*.${name}`]),
        ...SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      ],
      censor: hidden,
    },
    serializers: {
      err: loggedError,
      req: (request) => ({
        method: request.method,
        url: loggedUrl(request.url),
        // The property is optional, because requests on the administration socket have no request facts.
        remoteAddress: request.facts?.address,
      }),
    },
  };
}
