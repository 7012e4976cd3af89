export type { ResponseHeaders } from "./answer.ts";
export { type Camelized, type CamelizedInput, camelKey, fromWire, toWire } from "./case.ts";
export { createClient } from "./client.ts";
export type {
  AnyOperation,
  CallOptions,
  CallResult,
  Client,
  ClientCore,
  ClientOptions,
  Dialect,
  Difference,
  DifferenceName,
  Identity,
  ItemOf,
  ListId,
  OperationId,
  OperationMethods,
  Page,
  RequestOf,
  RequestParts,
  RequestReport,
  RequestResult,
  ResponseOf,
  ServerVersion,
  WitnessedAnswer,
  WorkloadIdentity,
  WriteCondition,
} from "./clientTypes.ts";
export * from "./contract/index.ts";
export {
  type ApiKeyCredential,
  apiKeyCredential,
  type Credential,
  credentialsFromEnvironment,
  type EnvironmentSettings,
  GITHUB_OIDC_VARIABLES,
  type OidcSource,
  type PasswordCredential,
  passwordCredential,
  readClaims,
  type TokenClaims,
  type TokenCredential,
  tokenCredential,
  type WorkloadCredential,
  workloadCredential,
} from "./credentials.ts";
export {
  acceptedDevicesOf,
  createTag,
  DIALECTS,
  hasDifference,
  isLegacyModeAllowed,
  type SshAccessMode,
  sshAccessModeOf,
} from "./dialect.ts";
export { createDispatcher, type DispatcherOptions } from "./dispatcher.ts";
export { type Environment, environmentValue } from "./environment.ts";
export * from "./errors.ts";
export { and, type Comparisons, Filter, type FilterField, or, where } from "./filter.ts";
export { isLoopbackHost } from "./loopback.ts";
export * from "./newerOperations.ts";
export { iteratePages } from "./pages.ts";
export { HttpProxy, PROXY_VARIABLES, type ProxyFor, proxiesFromEnvironment } from "./proxies.ts";
export { ProxyError } from "./proxyError.ts";
export {
  DEFAULT_RETRY,
  parseRetryAfter,
  pauseAfter,
  type RetryPolicy,
  type RetryWait,
  SYSTEM_TIMING,
  type Timing,
} from "./retry.ts";
export { Secret } from "./secret.ts";
export { isUnreachable } from "./transport.ts";
