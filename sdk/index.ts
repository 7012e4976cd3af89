export type { ResponseHeaders } from "./answer.ts";
export type { Identity } from "./authorizer.ts";
export { type Camelised, type CamelisedInput, camelKey, fromWire, toWire } from "./case.ts";
export { createClient } from "./client.ts";
export type {
  AnyOperation,
  CallOptions,
  CallResult,
  Client,
  ClientCore,
  ClientOptions,
  OperationMethods,
  RequestReport,
  RequestResult,
} from "./clientTypes.ts";
export * from "./contract/index.ts";
export {
  type ApiKeyCredential,
  apiKeyCredential,
  type Credential,
  credentialsFromEnvironment,
  type Environment,
  type EnvironmentSettings,
  environmentValue,
  type PasswordCredential,
  passwordCredential,
  type TokenCredential,
  tokenCredential,
} from "./credentials.ts";
export { type SdkErrorCode, sdkErrors } from "./errorCodes.ts";
export * from "./errors.ts";
export { and, type Comparisons, Filter, type FilterField, or, where } from "./filter.ts";
export type { ItemOf, ListId, OperationId, RequestOf, ResponseOf } from "./operations.ts";
export { iteratePages, type Page } from "./pages.ts";
export type { RequestParts } from "./request.ts";
export { DEFAULT_RETRY, pauseAfter, type RetryPolicy, type RetryWait, type Timing } from "./retry.ts";
export { Secret } from "./secret.ts";
