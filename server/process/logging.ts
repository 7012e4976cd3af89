import type { FastifyServerOptions } from "fastify";
import { stdSerializers } from "pino";

type LogLevel = "fatal" | "error" | "warn" | "info" | "debug" | "trace" | "silent";

/** Query parameters whose values are logged. Values of other parameters may be secrets (`sign`, `token`, a code). */
const harmless = new Set(["page", "per_page", "filter", "sort_by", "order_by", "status", "agent_version"]);

const hidden = "[redacted]";

/** Returns a request's URL for the log. Only values of harmless query parameters stay readable. */
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

/** Parts of a request and of a response. They contain passwords, codes, tokens and keys, so no log line shows them. */
const CONTENTS = ["headers", "body", "query", "params", "cookies"];

/**
 * Names of fields that contain a secret wherever they occur. `code` is not in this list, because errors, exit codes and
 * close codes have this name. A code of MFA occurs only in a body.
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
 * Fields of an error that the log shows: codes, and facts about files, connections and processes. Errors of libraries
 * have other fields with secrets. For example, `input` of an invalid URL contains a password, and `detail` of a
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
 * Fields of an error that contain the error's cause. Prisma stores the error of the database adapter in
 * `meta.driverAdapterError.cause`.
 */
const CAUSES = ["cause", "meta", "driverAdapterError"];
/** Maximum depth of causes, and maximum number of errors of an aggregate error, in the log. */
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
    // `cause` of an error is not enumerable.
    const value = (error as Readonly<Record<string, unknown>>)[name];
    if (typeof value !== "object" || value === null) continue;
    const inner = factsOf(value, depth - 1);
    if (Object.keys(inner).length > 0) facts[name] = inner;
  }
  return facts;
}

/**
 * Replaces the user name and the password in each URL of a text, and passwords in its query. A password may contain `@`,
 * so the host begins after the last `@` before a `/`. A service that authenticates by a token has it as the user name.
 */
const withoutCredentials = (text: string): string =>
  text.replace(/:\/\/[^\s/]*@/g, `://${hidden}@`).replace(/([?&](?:ssl)?password=)[^\s&]*/gi, `$1${hidden}`);

const factsOfOne = (error: unknown): LoggedFacts =>
  error instanceof Error ? { message: withoutCredentials(error.message), ...factsOf(error) } : {};

/**
 * Returns an error for the log: its type, its message and its stack, both with those of its causes, and the facts of
 * {@link factsOf}. A caught value that is not an error is shown as a text.
 */
function loggedError(caught: unknown): LoggedError {
  const error = caught instanceof Error ? caught : new Error(String(caught));
  const { type, message, stack } = stdSerializers.err(error);
  return {
    type,
    message: withoutCredentials(message),
    stack: withoutCredentials(stack),
    ...factsOf(error),
    // A connection to a host with several addresses fails with one error for each address.
    ...(error instanceof AggregateError && {
      aggregateErrors: error.errors.slice(0, DEPTH).map(factsOfOne),
    }),
  };
}

/** Returns the options of the service's log: lines of JSON on stdout, without secrets. */
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
