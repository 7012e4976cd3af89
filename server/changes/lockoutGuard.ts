import { LOCKOUT_GUARD, LOCKOUTS, type LockoutName, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { readRows, sql } from "../db/sql/sql.ts";
import { ConflictError, ForbiddenError, UnauthenticatedError } from "../errors.ts";
import type { Caller, Member } from "../http/access/identity.ts";
import { membershipLasts } from "../http/access/membership.ts";
import type { ObjectRequest } from "../http/handler.ts";
import type { SqlServices } from "../services.ts";

/**
 * Reads the caller's access and the administrators of the namespace before a write. Call the returned function after
 * the write, in the same transaction. Transactions are serializable, so two concurrent writes cannot each remove one of
 * the last two administrators.
 * @returns function that throws a {@link ConflictError} if the write locks out the caller or all administrators other
 *   than the owner
 */
export async function guardLockout(
  services: SqlServices,
  request: Pick<ObjectRequest, "identify">,
  identity: Caller | Member,
): Promise<() => Promise<void>> {
  const before = await standingOf(services, identity);
  return async () => {
    const identity = await request.identify(services).catch((error: unknown) => {
      // The write removed the caller's access.
      if (error instanceof UnauthenticatedError || error instanceof ForbiddenError)
        throw refusal("caller-removed");
      throw error;
    });
    const after = await standingOf(services, identity);
    if (!roleAtLeast(after.role, before.role)) throw refusal("caller-removed");
    if (after.end < before.end) throw refusal("caller-shortened");
    // The owner may remove all administrators, because the owner can appoint new ones.
    if (before.role === "owner" || after.administratorsUntil >= before.administratorsUntil) return;
    const none = after.administratorsUntil === Number.NEGATIVE_INFINITY;
    throw refusal(none ? "administrators-removed" : "administrators-shortened");
  };
}

function refusal(name: LockoutName): ConflictError {
  const { effect, remedy } = LOCKOUTS[name];
  return new ConflictError(
    `the write would ${effect}: ${remedy}, or omit the header ${LOCKOUT_GUARD} (allowLockout in a program)`,
    { [LOCKOUT_GUARD]: name },
  );
}

/**
 * Returns the role and the expiry time of the caller's access, and the latest expiry time of the administrators other
 * than the owner. Times are in milliseconds since 1970. The time is `Infinity` for access that does not expire, and
 * `-Infinity` if there are no administrators. Workloads and API keys are not treated as administrators: when a pipeline
 * or its issuer fails, a person must still be able to log in.
 */
async function standingOf(services: SqlServices, identity: Caller | Member) {
  if (!("caller" in identity)) throw new Error("a guarded write needs a caller with a role in a namespace");
  const { caller, tenant, role } = identity;
  const rows = await readRows<{ readonly userId: string; readonly accessExpiresAt: Date | null }>(
    services.db,
    sql`SELECT "Member"."userId", "Member"."accessExpiresAt"
      FROM "Member" JOIN "User" ON "User"."id" = "Member"."userId"
      WHERE "Member"."tenantId" = ${tenant} AND "Member"."role" = 'administrator'
        AND "Member"."status" = 'accepted' AND "User"."status" = 'confirmed'
        AND ${membershipLasts(services.accessTime())}`,
  );
  const ends = new Map(
    rows.map(({ userId, accessExpiresAt: end }) => [userId, end?.getTime() ?? Number.POSITIVE_INFINITY]),
  );
  return {
    role,
    // Only memberships of administrators expire. The owner's membership and the permissions of a workload do not
    // expire.
    end: (caller.kind === "user" && ends.get(caller.userId)) || Number.POSITIVE_INFINITY,
    administratorsUntil: Math.max(...ends.values()),
  };
}
