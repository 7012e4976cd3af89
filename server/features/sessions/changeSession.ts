import { inTransaction } from "../../db/sql/transaction.ts";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { DeviceCaller, Member } from "../../http/access/identity.ts";
import type { Services } from "../../services.ts";
import { UNPROVEN } from "../devices/deviceProof.ts";

/**
 * Identifies a session in a request. The namespace or the device limits the lookup to the sessions that the caller may
 * access. For a trusted service, both are undefined.
 */
export interface SessionKey {
  readonly uid: string;
  readonly tenantId?: string;
  readonly deviceUid?: string;
}

/** Returns the error for a session that does not exist, or that the caller may not read. */
export const unknownSession = () => new NotFoundError("no such session");

/**
 * Returns the key that limits the lookup of a session to the caller's scope. A device can read only its own sessions
 * (rules 1.8, Q3).
 */
export function sessionFor(identity: DeviceCaller | Member, uid: string): SessionKey {
  return "kind" in identity
    ? { uid, tenantId: identity.tenant, deviceUid: identity.uid }
    : { uid, tenantId: identity.tenant };
}

/**
 * Rejects a device that changes or records a session without having proven its private key. If the session runs through
 * the gateway of this service, rejects every device, because the gateway records the session.
 * @throws ForbiddenError the caller is a device that may not change or record the session
 */
export async function refuseUnprovenDevice(
  services: Services,
  identity: DeviceCaller | Member,
  uid: string,
): Promise<void> {
  if (!("kind" in identity)) return;
  if (!identity.proven) throw new ForbiddenError(UNPROVEN);
  const session = await services.db.session.findUnique({ where: { uid }, select: { viaGateway: true } });
  if (session?.viaGateway)
    throw new ForbiddenError("the session runs through the gateway of the service, which records it");
}

/**
 * Updates a session. `authenticated: true` makes the session active, unless it is closed (rules section 17.2).
 * @throws NotFoundError the session does not exist
 */
export async function changeSession(
  services: Services,
  key: SessionKey,
  changes: {
    readonly authenticated?: boolean | null | undefined;
    readonly type?: string | null | undefined;
  },
): Promise<void> {
  const { authenticated, type } = changes;
  await inTransaction(services, async (tx) => {
    const session = await tx.session.findUnique({ where: { ...key }, select: { closedAt: true } });
    if (!session) throw unknownSession();
    const begins = authenticated === true && session.closedAt === null;
    await tx.session.update({
      where: { uid: key.uid },
      data: {
        ...(authenticated != null && { authenticated }),
        ...(type != null && { type }),
        ...(begins && { lastSeen: services.now() }),
      },
      select: { uid: true },
    });
  });
}
