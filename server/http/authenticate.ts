import type { IncomingHttpHeaders } from "node:http";
import type { Role } from "@gatehouse-access/sdk/contract";
import type { Member as Membership } from "../db/generated/sqlite/client.ts";
import { readRows } from "../db/readRows.ts";
import { sql } from "../db/sql.ts";
import { UnauthenticatedError } from "../errors.ts";
import { digestOf } from "../secrets/digest.ts";
import type { Services } from "../services.ts";
import { hasEnded } from "./hasEnded.ts";
import type { Caller, DeviceCaller, KeyCaller, UserCaller } from "./identity.ts";
import { KEPT_LIFE, type TokenClaims, verifyToken } from "./tokens.ts";

/** The error for a credential that is not accepted. */
export const credentialRefusal = () => new UnauthenticatedError("missing or malformed jwt or API token");

/**
 * Authenticates the sender of a request. An API key wins over a token, even if the key is not valid; an empty header
 * counts as none; a token without `Bearer` is accepted too (rules section 1).
 * @throws UnauthenticatedError for a missing, unknown or expired credential, for a user who is no longer a member of
 * the token's namespace, and for a deleted device
 */
export async function authenticate(services: Services, headers: IncomingHttpHeaders): Promise<Caller> {
  const key = headers["x-api-key"];
  if (key) return authenticateKey(services, String(key));
  const token = headers.authorization?.replace(/^bearer\s+/i, "").trim();
  if (!token) throw credentialRefusal();
  return authenticateToken(services, token);
}

async function authenticateKey(services: Services, secret: string): Promise<KeyCaller> {
  const key = await services.db.apiKey.findUnique({
    where: { digest: digestOf(secret) },
    select: { tenantId: true, name: true, role: true, expiresIn: true },
  });
  const expired = key && key.expiresIn > 0n && Number(key.expiresIn) * 1000 <= services.now().getTime();
  if (!key || expired) throw credentialRefusal();
  return { kind: "apikey", name: key.name, tenant: key.tenantId, role: key.role as Role };
}

async function authenticateToken(services: Services, token: string): Promise<Caller> {
  const claims = await verifyToken(services, token);
  if (claims === undefined) throw credentialRefusal();
  const { tenant } = claims;
  if (claims.claims === "device") return authenticateDevice(services, claims);
  const present = await presentUser(services, claims);
  if (present === undefined || (tenant !== "" && present.role === null)) throw credentialRefusal();
  const { id: userId, name: username } = claims;
  return { kind: "user", userId, username, tenant, ...present };
}

/** A device's token does not expire; it ends with the device. */
async function authenticateDevice(
  services: Services,
  { tenant, uid }: { readonly tenant: string; readonly uid: string },
): Promise<DeviceCaller> {
  const device = await services.db.device.findUnique({
    where: { uid, tenantId: tenant },
    select: { status: true },
  });
  if (!device || device.status === "removed") throw credentialRefusal();
  return { kind: "device", tenant, uid };
}

interface CallerRow {
  readonly tokenVersion: number;
  readonly keptToken: string | null;
  readonly keptUntil: Date | null;
  readonly userStatus: string;
  readonly role: string | null;
  readonly status: string | null;
}

/**
 * The present state of a token's user, with the role in the token's namespace (null without a membership). Read with
 * every request, so that changes count at once. Undefined for a void token: user deleted or unconfirmed, or tokens
 * revoked.
 */
async function presentUser(
  services: Services,
  token: TokenClaims & { readonly claims: "user" },
): Promise<Pick<UserCaller, "tokenVersion" | "token" | "role"> | undefined> {
  const [row] = await readRows<CallerRow>(
    services.db,
    sql`SELECT "User"."tokenVersion" AS "tokenVersion", "User"."keptToken" AS "keptToken",
      "User"."keptUntil" AS "keptUntil", "User"."status" AS "userStatus", "Member"."role", "Member"."status"
    FROM "User" LEFT JOIN "Member" ON "Member"."userId" = "User"."id" AND "Member"."tenantId" = ${token.tenant}
    WHERE "User"."id" = ${token.id}`,
  );
  if (row?.userStatus !== "confirmed") return undefined;
  const { jti, expires, version } = token;
  const tokenVersion = Number(row.tokenVersion);
  const isKept = tokenVersion !== version;
  const endsAt = isKept ? keptUntil(row, jti, services.now()) : new Date(expires * 1000);
  if (endsAt === undefined) return undefined;
  const role = row.status === "accepted" ? (row.role as Role) : null;
  return { tokenVersion, token: { id: jti, endsAt, isKept }, role };
}

/** Until when a kept token of an earlier version is valid; undefined for any other token. */
function keptUntil({ keptToken, keptUntil: end }: CallerRow, jti: string, now: Date): Date | undefined {
  if (keptToken !== jti || end === null) return undefined;
  return hasEnded(end.getTime(), now.getTime(), KEPT_LIFE) ? undefined : end;
}

/** The user's role in a namespace; null for a non-member and for a pending member (rules Q6). */
export async function roleIn(services: Services, tenantId: string, userId: string): Promise<Role | null> {
  const [member] = await readRows<Pick<Membership, "role" | "status">>(
    services.db,
    sql`SELECT "role", "status" FROM "Member" WHERE "tenantId" = ${tenantId} AND "userId" = ${userId}`,
  );
  return member?.status === "accepted" ? (member.role as Role) : null;
}
