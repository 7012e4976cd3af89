import type { IncomingHttpHeaders } from "node:http";
import type { Role } from "@gatehouse-access/sdk/contract";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { Device, Member, Namespace, TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import { readRows, sql } from "../../db/sql/sql.ts";
import { UnauthenticatedError } from "../../errors.ts";
import { hasPeriodEnded } from "../../periods.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services, SqlServices } from "../../services.ts";
import type { Caller, DeviceCaller, KeyCaller, UserCaller, WorkloadCaller } from "./identity.ts";
import { membershipLasts } from "./membership.ts";
import { KEPT_LIFE, type TokenClaims, verifyToken } from "./tokens.ts";

type UserClaims = TokenClaims & { readonly claims: "user" };
type DeviceClaims = TokenClaims & { readonly claims: "device" };
type WorkloadClaims = TokenClaims & { readonly claims: "workload" };

/** Returns the error for a credential that the service does not accept. */
export const credentialRefusal = () => new UnauthenticatedError("missing or malformed jwt or API token");

/**
 * The credential in the headers of a request. Only a later database lookup finds the owner of the credential, and
 * checks that the credential is valid.
 */
export type Credential =
  | { readonly kind: "apikey"; readonly digest: string }
  | { readonly kind: "token"; readonly claims: TokenClaims };

/**
 * Reads the credential of a request, and verifies the signature of a token. An API key takes precedence over a token,
 * even if the API key is not valid. An empty header is treated as absent. A token without `Bearer` is also accepted
 * (rules section 1).
 * @throws UnauthenticatedError the request has no credential, or an invalid token
 */
export async function readCredential(services: Services, headers: IncomingHttpHeaders): Promise<Credential> {
  const key = headers["x-api-key"];
  if (key) return { kind: "apikey", digest: digestOf(String(key)) };
  const token = headers.authorization?.replace(/^bearer\s+/i, "").trim();
  const claims = token ? await verifyToken(services, token) : undefined;
  if (claims === undefined) throw credentialRefusal();
  return { kind: "token", claims };
}

/**
 * Returns the sender of a request with a credential.
 * @throws UnauthenticatedError the credential is unknown or expired, the user is no longer a member of the token's
 * namespace, or the device was deleted
 */
export async function authenticate(services: SqlServices, credential: Credential): Promise<Caller> {
  if (credential.kind === "apikey") return authenticateKey(services, credential.digest);
  const { claims } = credential;
  switch (claims.claims) {
    case "device":
      return authenticateDevice(services, claims);
    case "workload":
      return authenticateWorkload(services, claims);
    case "user":
      return authenticateUser(services, claims);
  }
}

async function authenticateKey(services: SqlServices, digest: string): Promise<KeyCaller> {
  const key = await findRow(services.db, "ApiKey", { digest });
  const expired = key && key.expiresIn > 0n && Number(key.expiresIn) * 1000 <= services.now().getTime();
  if (!key || expired) throw credentialRefusal();
  return { kind: "apikey", name: key.name, tenant: key.tenantId, role: key.role as Role };
}

async function authenticateUser(services: SqlServices, claims: UserClaims): Promise<UserCaller> {
  const present = await presentUser(services, claims);
  const { id: userId, name: username, tenant } = claims;
  if (present === undefined || (tenant !== "" && present.role === null)) throw credentialRefusal();
  return { kind: "user", userId, username, tenant, ...present };
}

type Rules = Pick<TrustedWorkload, "issuer" | "audience" | "claims">;

/**
 * Returns a digest of the rules that a workload's token matched. A session is valid only while the rules of the
 * workload stay the same.
 */
export const rulesDigest = ({ issuer, audience, claims }: Rules): string =>
  digestOf(JSON.stringify([issuer, audience, claims]));

/**
 * Returns the time until which a session can be renewed. The workload's maximum session time begins when the exchanged
 * token is issued.
 */
export const lastEnd = ({ maxSessionMinutes }: TrustedWorkload, startedAt: Date): Date =>
  new Date(startedAt.getTime() + Number(maxSessionMinutes) * MINUTE);

/**
 * Authenticates a workload by the token of its session. The token becomes invalid when the workload is deleted, or when
 * its issuer, audience or claims change. The service reads the workload's role and maximum session time with every
 * request.
 */
async function authenticateWorkload(
  services: SqlServices,
  { id, tenant, name, rules, startedAt }: WorkloadClaims,
): Promise<WorkloadCaller> {
  const workload = await findRow(services.db, "TrustedWorkload", { tenantId: tenant, id });
  if (workload === null || rulesDigest(workload) !== rules) throw credentialRefusal();
  // If the maximum session time is shortened, sessions that began earlier also end sooner.
  if (lastEnd(workload, startedAt) <= services.now()) throw credentialRefusal();
  return { kind: "workload", workloadId: id, name, tenant, role: workload.role as Role, rules, startedAt };
}

/**
 * Authenticates a device by its token. The token becomes invalid when the device enrolls again. If the namespace
 * requires a proof of the private key, a token that was issued without such a proof is invalid.
 */
async function authenticateDevice(
  services: SqlServices,
  { tenant, uid, proven, enrolledAt, expired }: DeviceClaims,
): Promise<DeviceCaller> {
  const [device] = await readRows<Pick<Device, "status" | "createdAt"> & Pick<Namespace, "deviceProof">>(
    services.db,
    sql`SELECT "Device"."status" AS "status", "Device"."createdAt" AS "createdAt",
        "Namespace"."deviceProof" AS "deviceProof"
      FROM "Device" JOIN "Namespace" ON "Namespace"."tenantId" = "Device"."tenantId"
      WHERE "Device"."uid" = ${uid} AND "Device"."tenantId" = ${tenant}`,
  );
  if (!device || device.status === "removed") throw credentialRefusal();
  // Tokens that earlier versions issued contain the enrollment time in seconds, without milliseconds.
  if (Math.floor(device.createdAt.getTime() / 1000) * 1000 > enrolledAt.getTime()) throw credentialRefusal();
  if (device.deviceProof === "required" && !proven) throw credentialRefusal();
  return { kind: "device", tenant, uid, proven, expired };
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
 * Returns the current state of a token's user, with the user's role in the token's namespace (null without a
 * membership). The service reads this state with every request, so that changes take effect immediately. Returns
 * undefined if the user is deleted or unconfirmed, or if the token is revoked.
 */
async function presentUser(
  services: SqlServices,
  token: UserClaims,
): Promise<Pick<UserCaller, "tokenVersion" | "token" | "role"> | undefined> {
  const [row] = await readRows<CallerRow>(
    services.db,
    sql`SELECT "User"."tokenVersion" AS "tokenVersion", "User"."keptToken" AS "keptToken",
      "User"."keptUntil" AS "keptUntil", "User"."status" AS "userStatus", "Member"."role", "Member"."status"
    FROM "User" LEFT JOIN "Member" ON "Member"."userId" = "User"."id" AND "Member"."tenantId" = ${token.tenant}
      AND ${membershipLasts(services.accessTime())}
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

/**
 * Returns the expiry time of a token that stayed valid after a password change. Returns undefined for any other token.
 */
function keptUntil({ keptToken, keptUntil: end }: CallerRow, jti: string, now: Date): Date | undefined {
  if (keptToken !== jti || end === null) return undefined;
  return hasPeriodEnded(end.getTime(), now.getTime(), KEPT_LIFE) ? undefined : end;
}

/**
 * Returns the user's role in a namespace. Returns null for a user who is not a member, for a pending member (rules Q6),
 * and after the membership has expired.
 */
export async function roleIn(services: SqlServices, tenantId: string, userId: string): Promise<Role | null> {
  const [member] = await readRows<Pick<Member, "role" | "status">>(
    services.db,
    sql`SELECT "role", "status" FROM "Member" WHERE "tenantId" = ${tenantId} AND "userId" = ${userId}
      AND ${membershipLasts(services.accessTime())}`,
  );
  return member?.status === "accepted" ? (member.role as Role) : null;
}
