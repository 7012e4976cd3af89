import type { TransportFailure } from "./errors.ts";

const TIMEOUTS = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);
/** Matches the error codes of a TLS connection to a server that does not use TLS. */
export const NO_TLS =
  /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE))$/;
const UNTRUSTED =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA)/;

function property(error: unknown, name: "code" | "syscall"): string {
  const value =
    typeof error === "object" && error !== null ? (error as Record<string, unknown>)[name] : undefined;
  return typeof value === "string" ? value : "";
}

/**
 * Returns the first error of a connection attempt to several addresses of one host name. The errors of the other
 * addresses are similar.
 */
const firstOf = (error: unknown): unknown =>
  error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;

/**
 * Returns the error code of a failed connection or request, such as `ECONNREFUSED`. Returns an empty string if there is
 * none.
 */
export const codeOf = (error: unknown): string => property(error, "code") || property(firstOf(error), "code");

/** Returns the reason why a connection or request failed. */
export function connectionFailureOf(error: unknown): Exclude<TransportFailure, "proxy_refused" | "aborted"> {
  const first = firstOf(error);
  const code = codeOf(error);
  if (["connect", "getaddrinfo"].includes(property(first, "syscall")) || code === "UND_ERR_CONNECT_TIMEOUT") {
    return "unreachable";
  }
  if (UNTRUSTED.test(code) || NO_TLS.test(code)) return "untrusted";
  return isTimeout(error) || TIMEOUTS.has(code) ? "timeout" : "interrupted";
}

const isTimeout = (error: unknown): boolean => error instanceof DOMException && error.name === "TimeoutError";

/**
 * Returns the first bytes of a response that is not HTTP. Returns undefined for any other error, and for a response
 * that begins like an HTTP response.
 */
export function foreignGreeting(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "HTTPParserError") return undefined;
  const { data } = error as { readonly data?: unknown };
  return typeof data === "string" && !data.startsWith("HTTP/") ? data : undefined;
}

/** Cause and remedy of a failure, as parts of an error message. */
export interface Failure {
  readonly detail: string;
  readonly remedy?: string;
}

/** Returns the cause and the remedy of a failed connection to a host. */
export function unreachable(code: string, address: string): Failure {
  const ofCode = code === "" ? "" : ` (${code})`;
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return {
        detail: `the name ${new URL(address).hostname} does not resolve${ofCode}`,
        remedy: "check the name and the DNS server",
      };
    case "ECONNREFUSED":
      return {
        detail: `connection refused${ofCode}`,
        remedy: "check that the service is running and listening on this port",
      };
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return {
        detail: `no response${ofCode}`,
        remedy: "check the address and the network between this machine and the service",
      };
    default:
      return { detail: `no connection${ofCode}` };
  }
}

/** Returns the cause and the remedy of a refused certificate. */
export function untrusted(code: string): Failure {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID" || code === "HOSTNAME_MISMATCH")
    return {
      detail: `is for a different name (${code})`,
      remedy: "set the URL to the name in the certificate",
    };
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return { detail: `is not valid at this time (${code})`, remedy: "check the clock of this machine" };
  return {
    detail: `is not trusted (${code})`,
    remedy:
      "if you trust the certificate, set GATEHOUSE_CA_FILE (SDK option: ca) or NODE_EXTRA_CA_CERTS to a PEM file with the certificate of the issuing authority",
  };
}

/** Returns the scheme, host and port of an address, including a default port. */
export function placeOf(address: string): string {
  const { protocol, hostname, port } = new URL(address);
  return `${protocol}//${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}
