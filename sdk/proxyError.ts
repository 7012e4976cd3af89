import {
  codeOf,
  connectionFailureOf,
  type Failure,
  NO_TLS,
  placeOf,
  unreachable,
  untrusted,
} from "./connectionFailures.ts";
import type { HttpProxy } from "./proxies.ts";

/**
 * Thrown when a proxy did not open the connection to the target of a request. Nothing was sent to the target. The error
 * contains the address of the proxy without user name and password.
 */
export class ProxyError extends Error implements Failure {
  override readonly name = "ProxyError";
  /**
   * Code of the failure. `ERR_PROXY_REFUSED`: the proxy refuses the request. `ERR_PROXY_UNREACHABLE`: there is no
   * connection to the proxy, or the proxy cannot connect to the target.
   */
  readonly code: "ERR_PROXY_REFUSED" | "ERR_PROXY_UNREACHABLE";
  readonly reason: "proxy_refused" | "unreachable" | "untrusted";
  /** Status of the proxy's response. Undefined if there is no response. In this case, `cause` contains the error. */
  readonly status: number | undefined;
  readonly detail: string;
  readonly remedy: string;

  /**
   * Creates the error for a failed connection through a proxy.
   * @param target the URL of the service
   * @param failure the status of the proxy's response, or the error if there is no response
   */
  constructor(proxy: HttpProxy, target: string, failure: number | Error) {
    const hasStatus = typeof failure === "number";
    const { detail, remedy } = hasStatus
      ? failureOfStatus(proxy, target, failure)
      : { detail: failureOfConnection(proxy, failure), remedy: `check ${proxy.setting}` };
    const isBlocked = hasStatus && failure < 500;
    const without = `list ${new URL(target).hostname} in NO_PROXY to connect without a proxy`;
    super(detail, hasStatus ? {} : { cause: failure });
    this.code = isBlocked ? "ERR_PROXY_REFUSED" : "ERR_PROXY_UNREACHABLE";
    const isUntrusted = !hasStatus && connectionFailureOf(failure) === "untrusted";
    this.reason = isBlocked ? "proxy_refused" : isUntrusted ? "untrusted" : "unreachable";
    this.status = hasStatus ? failure : undefined;
    this.detail = detail;
    this.remedy = `${remedy}, or ${without}`;
  }
}

function failureOfConnection({ address }: HttpProxy, error: Error): string {
  const code = error.name === "TimeoutError" ? "ETIMEDOUT" : codeOf(error);
  if (NO_TLS.test(code)) return `the proxy ${address} does not use TLS (${code})`;
  return connectionFailureOf(error) === "untrusted"
    ? `the certificate of the proxy ${address} ${untrusted(code).detail}`
    : `cannot connect to the proxy ${address}: ${unreachable(code, address).detail}`;
}

function failureOfStatus({ address, setting, authorization }: HttpProxy, target: string, status: number) {
  if (status === 407)
    return {
      detail: `the proxy ${address} ${authorization ? "rejected the" : "requires a"} user name and password (407)`,
      remedy: `set ${setting} to http://user:password@host:port`,
    };
  const place = placeOf(target);
  return status < 500
    ? {
        detail: `the proxy ${address} refused the connection to ${place} (${status})`,
        remedy: "allow the address in the proxy",
      }
    : {
        detail: `the proxy ${address} cannot connect to ${place} (${status})`,
        remedy: "check the URL of the service",
      };
}
