import { batchesOf } from "../../db/sql/sql.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { activeRules } from "../../features/firewall/evaluate.ts";
import type { FoundKey } from "../../features/publicKeys/publicKey.ts";
import { withTags } from "../../features/tags/tagList.ts";
import type { Services } from "../../services.ts";
import type { RefusedLogin } from "../protocol.ts";
import { NO_DEVICE, refusalOf, storedKey } from "./admit.ts";

/** The facts about an open login that determine whether the policy still allows it. */
export interface LoginFacts {
  readonly deviceUid: string;
  readonly tenantId: string;
  /** Login name on the device. */
  readonly username: string;
  /** The client's address. */
  readonly address: string;
  /** The public key that opened the login, in SSH's wire format; undefined if a password opened it. */
  readonly key: Buffer | undefined;
  /** The user who opened the login in a browser; undefined if the login was not opened in a browser. */
  readonly userId: string | undefined;
}

/**
 * Returns the logins that the policy of their namespace no longer allows. Reads the policy in one transaction.
 * @param logins logins of one namespace, by the uids of their sessions
 */
export async function refusedLogins(
  services: Services,
  tenantId: string,
  logins: ReadonlyMap<string, LoginFacts>,
): Promise<Map<string, RefusedLogin>> {
  const facts = [...logins.values()];
  const uids = [...new Set(facts.map(({ deviceUid }) => deviceUid))];
  const userIds = [...new Set(facts.flatMap(({ userId }) => userId ?? []))];
  const { devices, keys, members, rules } = await inTransaction(services, async (tx) => {
    const devices = [];
    for (const batch of batchesOf(uids)) {
      const where = { uid: { in: batch }, tenantId, status: "accepted" };
      devices.push(...(await tx.device.findMany({ where, include: withTags })));
    }
    const keys = new Map<string, FoundKey | null>();
    for (const { key } of facts) {
      const name = key?.toString("latin1");
      if (key && name !== undefined && !keys.has(name)) keys.set(name, await storedKey(tx, tenantId, key));
    }
    const members =
      userIds.length === 0
        ? []
        : await tx.member.findMany({ where: { tenantId, userId: { in: userIds }, status: "accepted" } });
    const rules = services.settings.edition === "community" ? [] : await activeRules(tx, tenantId);
    return { devices, keys, members, rules };
  });
  const byUid = new Map(devices.map((device) => [device.uid, device]));
  const memberIds = new Set(members.map(({ userId }) => userId));
  const refused = new Map<string, RefusedLogin>();
  for (const [session, { deviceUid, username: login, address, key, userId }] of logins) {
    const device = byUid.get(deviceUid);
    const stored = key && keys.get(key.toString("latin1"));
    const refusal =
      device === undefined
        ? NO_DEVICE
        : userId !== undefined && !memberIds.has(userId)
          ? ({ refused: "member", reason: "the user is no longer a member of the namespace" } as const)
          : await refusalOf({ device, stored, rules }, { login, address, key }, services.now());
    if (refusal !== undefined) refused.set(session, refusal);
  }
  return refused;
}
