import type { Operation } from "@gatehouse-access/sdk/contract";
import { isList } from "./query.ts";
import { namesObject } from "./validation.ts";

const MALFORMED = "a value is not allowed, or the request is malformed";
const NOT_ALLOWED = "the credential is of a kind, for a namespace or of a role that may not do this";
const GONE = "what the request refers to does not exist, or not any more";
const CONTENT_TYPE = "the body has another content type than application/json, or a malformed one";
const TOO_MANY = "too many requests; Retry-After says for how many seconds";
const WRONG_TYPE = "the body is not JSON, or a value has the wrong JSON type";

/**
 * Errors of HTTP itself, which every operation may return: their meaning, by status. They come before the request is
 * known, so they have no `X-Request-ID`; only a 503 may come later.
 */
export const CONNECTION_ERRORS: Readonly<Record<number, string>> = {
  408: "the request took longer than 30 seconds to arrive",
  431: "request line and headers are larger than 64 KiB",
  503: "the database cannot be used now, or there is too much to do: Retry-After says for how many seconds; or the service is being stopped",
};

/**
 * Errors that an operation may return beside those that its contract lists for clients to tell apart: their meaning, by
 * status (rules sections 1, 6 and 8).
 */
export function commonErrors(operation: Operation): Readonly<Record<number, string>> {
  const errors: Record<number, string> = { 400: MALFORMED };
  if (operation.limit) errors[429] = TOO_MANY;
  if (operation.scope !== "public") {
    errors[403] = NOT_ALLOWED;
    if (operation.method !== "GET") errors[404] = GONE;
  }
  if (namesObject(operation)) errors[404] = GONE;
  // Bodies are read even if the operation has none.
  if (operation.method !== "GET") {
    errors[413] = `the body is larger than ${operation.bodyLimit / 1024} KiB`;
    errors[415] = CONTENT_TYPE;
  }
  if (operation.body || isList(operation)) errors[422] = WRONG_TYPE;
  return errors;
}
