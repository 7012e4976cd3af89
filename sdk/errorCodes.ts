/** The description of an error code in docs/reference/errors.md. */
export interface ErrorKind {
  /** Conditions in which the error occurs. */
  readonly cause: string;
  /** Instructions for the user. */
  readonly remedy: string;
}

/** The error codes of the SDK, each with its cause and remedy. */
export const sdkErrors = {
  configuration: {
    cause: "A setting, an option or an argument is missing or wrong. The client sent no request.",
    remedy: "Correct the field in the error.",
  },
  pattern: {
    cause: "A pattern is not a regular expression in RE2 syntax.",
    remedy: "Correct the pattern.",
  },
  validation: {
    cause: "The service rejects the request as invalid (400, 415 or 422).",
    remedy: "Correct the fields that the error lists.",
  },
  authentication: {
    cause: "The request has no credential, or the credential is wrong or has expired (401).",
    remedy: "Log in again, or set a valid credential.",
  },
  permission_denied: {
    cause:
      "The credential is valid but lacks the permission (403), or a limit or the billing forbids the request (402).",
    remedy: "Use a credential with a higher role, or raise the limit.",
  },
  not_found: {
    cause: "The namespace of the credential has no such object (404).",
    remedy: "Check the id and the namespace.",
  },
  conflict: {
    cause: "The object, or an object with the same name, already exists (409).",
    remedy: "Choose another name, or use the existing object.",
  },
  lockout_guard: {
    cause: "The change would lock out the caller or the administrators (409).",
    remedy: "Use the credential of another administrator, or add another administrator first.",
  },
  precondition_failed: {
    cause: "The object changed after it was read (412).",
    remedy: "Read the object again, then repeat the change.",
  },
  locked_out: {
    cause: "The login is locked after too many wrong passwords (429).",
    remedy: "Wait until the lockout ends.",
  },
  payment: {
    cause: "The payment gateway refused the payment or failed (424).",
    remedy: "Check the payment method. `gatewayCode` contains the gateway's own code.",
  },
  rate_limited: {
    cause: "The service received too many requests (429), and the client has used up its retries.",
    remedy: "Wait for `retryAfter` milliseconds, then repeat the request.",
  },
  server_failed: {
    cause: "The service failed (status 500 or higher).",
    remedy: "Search the log of the service for the request id.",
  },
  request_refused: {
    cause: "The service refused the request with a 4xx status that has no other code on this page.",
    remedy: "Read the status and the message of the service in the error.",
  },
  unreachable: {
    cause: "The client cannot connect to the service. The client sent nothing.",
    remedy: "Check the address and the network, and check that the service is running.",
  },
  proxy_refused: {
    cause:
      "The HTTP proxy requires a user name and password, or refuses the connection. The client sent nothing to the service.",
    remedy:
      "Correct the proxy in `HTTPS_PROXY` or `HTTP_PROXY`, or list the host of the service in `NO_PROXY`.",
  },
  untrusted: {
    cause: "The server does not use TLS, or its certificate is not trusted. The client sent nothing.",
    remedy: "Set `GATEHOUSE_CA_FILE` to the certificate of the authority, or correct the address.",
  },
  interrupted: {
    cause: "The connection broke before the response was complete.",
    remedy: "Repeat the request. If `outcome` is `unknown`, read the object first.",
  },
  timeout: {
    cause: "No complete response arrived in time.",
    remedy: "Repeat the request. If `outcome` is `unknown`, read the object first.",
  },
  aborted: {
    cause: "The caller aborted the request.",
    remedy: "If `outcome` is `unknown`, read the object before you repeat the request.",
  },
  protocol: {
    cause:
      "The response does not come from the service, or is too large: a redirect, a proxy's page, or unexpected JSON.",
    remedy: "Check the URL of the service.",
  },
  wrong_namespace: {
    cause: "The server returned a token for a namespace other than the requested namespace.",
    remedy: "Check the proxies between the client and the service.",
  },
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** An error code of the SDK. */
export type SdkErrorCode = keyof typeof sdkErrors;
