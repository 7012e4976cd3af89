import type { IncomingHttpHeaders } from "node:http";
import { IDEMPOTENCY_KEY, idempotencyKey, type Operation } from "@gatehouse-access/sdk/contract";
import { digestOf } from "../secrets/digest.ts";
import { parse } from "./validation.ts";

/**
 * The digest of the request's Idempotency-Key, which is all that is kept of it; null without one, and on an
 * operation that does not take it.
 * @throws InvalidError not 1 to 255 visible ASCII characters
 */
export function readCreationKey(operation: Operation, headers: IncomingHttpHeaders): string | null {
  const value = headers[IDEMPOTENCY_KEY.toLowerCase()];
  if (!operation.idempotencyKey || value === undefined) return null;
  return digestOf(parse(idempotencyKey, value, IDEMPOTENCY_KEY));
}
