import { parseJson } from "./json.ts";

/** What the client reads of a token (rules section 2). It does not check the signature, which only the server can. */
export interface TokenClaims {
  readonly tenant?: string;
  readonly userId?: string;
  /** When the token expires. */
  readonly expiresAt?: Date;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The claims of a JWT, which is not checked; undefined for a text that is no JWT. */
export function readClaims(token: string): TokenClaims | undefined {
  const [, payload, signature] = token.split(".");
  if (!payload || signature === undefined) return undefined;
  let claims: unknown;
  try {
    claims = parseJson(Buffer.from(payload, "base64url").toString("utf8"));
  } catch {
    // No JSON, so no JWT. The server decides what to make of such a token.
    return undefined;
  }
  if (typeof claims !== "object" || claims === null) return undefined;
  const { tenant, id, exp } = claims as Record<string, unknown>;
  const expiresAt = typeof exp === "number" ? new Date(exp * 1000) : undefined;
  return {
    ...(text(tenant) && { tenant: text(tenant) }),
    ...(text(id) && { userId: text(id) }),
    ...(expiresAt && !Number.isNaN(expiresAt.getTime()) && { expiresAt }),
  };
}

/** When a token expired, if that was before `now` (milliseconds); undefined for any other one. */
export function expiredAt(token: string, now: number): Date | undefined {
  const end = readClaims(token)?.expiresAt;
  return end && end.getTime() <= now ? end : undefined;
}
