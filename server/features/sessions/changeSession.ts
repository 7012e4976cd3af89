import { inTransaction } from "../../db/sql/transaction.ts";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { DeviceCaller, Member } from "../../http/access/identity.ts";
import type { Services } from "../../services.ts";
import { UNPROVEN } from "../devices/deviceProof.ts";

/** How a request identifies a session: by its uid and, unless a trusted service sends it, by the owner. */
export interface SessionKey {
  readonly uid: string;
  readonly tenantId?: string;
  readonly deviceUid?: string;
}

/** The error for a session that the caller cannot see. */
export const unknownSession = () => new NotFoundError("no such session");

/** The key of a session in the caller's scope: a device may see only its own sessions (rules 1.8, Q3). */
export function sessionFor(identity: DeviceCaller | Member, uid: string): SessionKey {
  return "kind" in identity
    ? { uid, tenantId: identity.tenant, deviceUid: identity.uid }
    : { uid, tenantId: identity.tenant };
}

/**
 * A device may change and record sessions of its own, if it has proven its private key; but none that goes through this
 * service, which knows what happens in it.
 * @throws ForbiddenError the caller is a device and may not
 */
export async function refuseUnprovenDevice(
  services: Services,
  identity: DeviceCaller | Member,
  uid: string,
): Promise<void> {
  if (!("kind" in identity)) return;
  if (!identity.proven) throw new ForbiddenError(UNPROVEN);
  const session = await services.db.session.findUnique({ where: { uid }, select: { viaGateway: true } });
  if (session?.viaGateway) throw new ForbiddenError("the session goes through the service, which records it");
}

/**
 * Updates a session. With `authenticated: true` it becomes active, unless it is closed (rules section 17.2).
 * @throws NotFoundError no such session
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
