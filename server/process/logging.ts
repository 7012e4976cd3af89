import type { FastifyServerOptions } from "fastify";

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

const secretNames = [
  "password",
  "passwordHash",
  "current_password",
  "token",
  "secret",
  "sign",
  "sig",
  "code",
  "mfaSecret",
];

/** Returns the options of the service's log: lines of JSON on stdout, without secrets. */
export function loggerOptions(level: LogLevel): Extract<FastifyServerOptions["logger"], object> {
  return {
    level,
    redact: {
      paths: [
        ...[
          "authorization",
          '["x-api-key"]',
          '["x-internal-token"]',
          "cookie",
          '["set-cookie"]',
          '["x-mfa-token"]',
        ].flatMap((name) => {
          const part = name.startsWith("[") ? name : `.${name}`;
          return [`headers${part}`, `*.headers${part}`];
        }),
        ...secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      ],
      censor: hidden,
    },
    serializers: {
      req: (request) => ({
        method: request.method,
        url: loggedUrl(request.url),
        // The property is optional, because requests on the administration socket have no request facts.
        remoteAddress: request.facts?.address,
      }),
    },
  };
}
