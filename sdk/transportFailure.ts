import { otherScheme, placeOf } from "./address.ts";
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
/** The client was closed, or the request has a form that cannot be sent. */
const UNSENT = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_CLOSED"]);
/** The other side does not speak TLS. */
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
function firstOf(error: unknown): unknown {
  return error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
}

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

/** What happened, and what to do about it. */
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
  const { operation, path, attempts } = context;
  if (!how.aborted && UNSENT.has(code)) {
    return new ConfigurationError(property(error, "message"), { field: [operation.id], cause: error });
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
