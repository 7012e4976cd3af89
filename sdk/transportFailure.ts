import type { AnswerContext } from "./answer.ts";
import {
  ConfigurationError,
  type GatehouseError,
  ProtocolError,
  type RequestErrorDetails,
  TransportError,
  type TransportFailure,
} from "./errors.ts";

const TIMEOUTS = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);
const UNREADABLE = new Set(["UND_ERR_RES_EXCEEDED_MAX_SIZE", "UND_ERR_HEADERS_OVERFLOW"]);
/** The client itself was closed, or the request could not be put on the wire. */
const UNSENT = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_CLOSED"]);
const UNTRUSTED =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA)/;

function property(error: unknown, name: "code" | "syscall" | "message"): string {
  const value =
    typeof error === "object" && error !== null ? (error as Record<string, unknown>)[name] : undefined;
  return typeof value === "string" ? value : "";
}

/** A name that resolves to several addresses fails with one error for each; they fail alike. */
function firstOf(error: unknown): unknown {
  return error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
}

function reasonOf(error: unknown): TransportFailure {
  const first = firstOf(error);
  const code = property(error, "code") || property(first, "code");
  if (["connect", "getaddrinfo"].includes(property(first, "syscall")) || code === "UND_ERR_CONNECT_TIMEOUT") {
    return "unreachable";
  }
  if (UNTRUSTED.test(code)) {
    return "untrusted";
  }
  const timedOut = error instanceof DOMException && error.name === "TimeoutError";
  return timedOut || TIMEOUTS.has(code) ? "timeout" : "interrupted";
}

const WORDS: Record<TransportFailure, string> = {
  unreachable: "the service can not be reached",
  untrusted: "the certificate of the service is not trusted",
  interrupted: "the connection broke before the answer was complete",
  timeout: "no complete answer in time",
  aborted: "aborted by the caller",
};

/**
 * The error for a request that got no complete answer.
 * @param how `aborted`: the caller gave up; `sent`: the request may have left this process
 */
export function failureOf(
  context: AnswerContext,
  error: unknown,
  how: { readonly aborted: boolean; readonly sent: boolean },
): GatehouseError {
  const code = property(error, "code") || property(firstOf(error), "code");
  const { operation, path, attempts } = context;
  if (!how.aborted && UNSENT.has(code)) {
    return new ConfigurationError(`${operation.id}: ${property(error, "message")}`, { cause: error });
  }
  const reason = how.aborted ? "aborted" : reasonOf(error);
  const arrived = how.sent && reason !== "unreachable" && reason !== "untrusted";
  const changes = operation.method !== "GET";
  const details: RequestErrorDetails = {
    operation: operation.id,
    method: operation.method,
    path,
    attempts,
    outcome: changes && (arrived || context.unclear) ? "unknown" : "none",
  };
  if (UNREADABLE.has(code)) {
    return new ProtocolError("the answer is larger than allowed", details, { cause: error });
  }
  const name = code === "" ? "" : ` (${code})`;
  return new TransportError(`${WORDS[reason]}${name}`, details, reason, error);
}
