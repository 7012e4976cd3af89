import type { IncomingHttpHeaders } from "node:http";
import type { Role } from "@gatehouse-access/sdk/contract";
import type { Member as Membership } from "../db/generated/sqlite/client.ts";
import { digestOf } from "../secrets.ts";
import type { Services } from "../services.ts";
import { UnauthenticatedError } from "./errors.ts";
import type { Caller, KeyCaller } from "./identity.ts";
import { verifyToken } from "./tokens.ts";

const refusal = () => new UnauthenticatedError("missing or malformed jwt or API token");

/**
 * Who sent a request. An API key wins over a token, even when it is not valid; an empty header counts as none;
 * a token without `Bearer` is taken too (rules section 1).
 * @throws UnauthenticatedError for a missing, unknown or expired credential, and for a user who is no member
 * of the token's namespace any more
 */
export async function authenticate(services: Services, headers: IncomingHttpHeaders): Promise<Caller> {
  const key = headers["x-api-key"];
  if (key) return authenticateKey(services, String(key));
  const token = headers.authorization?.replace(/^bearer\s+/i, "").trim();
  if (!token) throw refusal();
  return authenticateToken(services, token);
}

async function authenticateKey(services: Services, secret: string): Promise<KeyCaller> {
  const key = await services.db.apiKey.findUnique({
    where: { digest: digestOf(secret) },
    select: { tenantId: true, role: true, expiresIn: true },
  });
  const expired = key && key.expiresIn > 0n && Number(key.expiresIn) * 1000 <= services.now().getTime();
  if (!key || expired) throw refusal();
  return { kind: "apikey", tenant: key.tenantId, role: key.role as Role };
}

async function authenticateToken(services: Services, token: string): Promise<Caller> {
  const claims = await verifyToken(services, token);
  if (claims === undefined) throw refusal();
  const { tenant } = claims;
  if (claims.claims === "device") return { kind: "device", tenant, uid: claims.uid };
  const user = { kind: "user", userId: claims.id, username: claims.name, tenant } as const;
  if (tenant === "") return { ...user, role: null };
  const role = await roleIn(services, tenant, claims.id);
  if (role === null) throw refusal();
  return { ...user, role };
}

/** The user's role in a namespace; null for one who is no member, or a pending one (rules Q6). */
export async function roleIn(services: Services, tenantId: string, userId: string): Promise<Role | null> {
  // By SQL: every request of a user begins with it, and Prisma's own way costs three times as much.
  const [member] = await services.db.$queryRaw<Pick<Membership, "role" | "status">[]>`
    SELECT "role", "status" FROM "Member" WHERE "tenantId" = ${tenantId} AND "userId" = ${userId}`;
  return member?.status === "accepted" ? (member.role as Role) : null;
}
