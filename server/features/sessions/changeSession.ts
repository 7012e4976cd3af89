import { inTransaction } from "../../db/transaction.ts";
import { NotFoundError } from "../../errors.ts";
import type { DeviceCaller, Member } from "../../http/identity.ts";
import type { Services } from "../../services.ts";

/** What a request finds a session by: its uid, and for all but trusted services whose it must be. */
export interface SessionKey {
  readonly uid: string;
  readonly tenantId?: string;
  readonly deviceUid?: string;
}

export const unknownSession = () => new NotFoundError("no such session");

/** The session as far as it is the caller's: a device has its own alone (rules 1.8, Q3). */
export function sessionFor(identity: DeviceCaller | Member, uid: string): SessionKey {
  return "kind" in identity
    ? { uid, tenantId: identity.tenant, deviceUid: identity.uid }
    : { uid, tenantId: identity.tenant };
}

/**
 * Changes what is known of a session. With `authenticated` it begins to be active, if it is not closed (rules
 * section 17.2).
 * @throws NotFoundError
 */
export async function changeSession(
  services: Services,
  key: SessionKey,
  changes: { readonly authenticated?: boolean | null | undefined; readonly type?: string | null | undefined },
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
