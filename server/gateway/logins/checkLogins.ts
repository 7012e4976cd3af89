import type { Decision } from "../../DecisionTurns.ts";
import { batchesOf, readRows, sql } from "../../db/sql/sql.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { activeRules } from "../../features/firewall/evaluate.ts";
import type { OwnedKey } from "../../features/publicKeys/publicKeys.ts";
import { withTags } from "../../features/tags/tagList.ts";
import { type MembershipState, membershipLasts } from "../../http/access/membership.ts";
import type { Services } from "../../services.ts";
import type { LoginEnds, RefusedLogin } from "../protocol.ts";
import { keyEnd, NO_DEVICE, nextEnd, nextRuleEnd, refusalOf, storedKey } from "./admit.ts";

/** The data of an open login that determines whether the policy still allows it. */
export interface LoginFacts {
  readonly deviceUid: string;
  readonly tenantId: string;
  /** Login name on the device. */
  readonly username: string;
  /** The client's address. */
  readonly address: string;
  /** The public key that opened the login, in SSH's wire format. Undefined if a password opened the login. */
  readonly key: Buffer | undefined;
  /** The user who opened the login in a browser; undefined if the login was not opened in a browser. */
  readonly userId: string | undefined;
}

/** The decision of the policy about an open login. */
interface LoginCheck {
  /** The reason why the policy no longer allows the login. Undefined if the policy still allows the login. */
  readonly refusal: RefusedLogin | undefined;
  /** The expiry times on which the decision depends. */
  readonly ends: Pick<LoginEnds, "access" | "rule">;
}

/** The policy of a namespace for open logins, read in one transaction. */
export type LoginPolicy = Awaited<ReturnType<typeof readLoginPolicy>>;

/**
 * Reads the current policy of a namespace for its open logins, in one transaction.
 * @param logins logins of the namespace, by the uids of their sessions
 */
export async function readLoginPolicy(
  services: Services,
  tenantId: string,
  logins: ReadonlyMap<string, LoginFacts>,
) {
  const facts = [...logins.values()];
  const uids = [...new Set(facts.map(({ deviceUid }) => deviceUid))];
  const userIds = [...new Set(facts.flatMap(({ userId }) => userId ?? []))];
  const at = services.accessTime();
  const read = await inTransaction(services, async (tx) => {
    const devices = [];
    for (const batch of batchesOf(uids)) {
      const where = { uid: { in: batch }, tenantId, status: "accepted" };
      devices.push(...(await tx.device.findMany({ where, include: withTags })));
    }
    const keys = new Map<string, OwnedKey | null>();
    for (const { key } of facts) {
      const name = key?.toString("latin1");
      if (key && name !== undefined && !keys.has(name)) keys.set(name, await storedKey(tx, tenantId, key));
    }
    const members = new Map<string, MembershipState>();
    for (const batch of batchesOf(userIds)) {
      const rows = await readRows<MembershipState & { readonly userId: string }>(
        tx,
        sql`SELECT "userId", "status", "accessExpiresAt" FROM "Member" WHERE "tenantId" = ${tenantId}
          AND "userId" IN (${sql.list(batch)}) AND "status" = 'accepted' AND ${membershipLasts(at)}`,
      );
      for (const row of rows) members.set(row.userId, row);
    }
    const rules = services.settings.edition === "community" ? [] : await activeRules(tx, tenantId);
    return { devices, keys, members, rules };
  });
  return { ...read, at };
}

/**
 * Checks open logins against the policy of their namespace.
 * @param logins logins of the namespace, by the uids of their sessions
 */
export function* checkLogins(
  services: Services,
  { devices, keys, members, rules, at }: LoginPolicy,
  logins: ReadonlyMap<string, LoginFacts>,
): Decision<Map<string, LoginCheck>> {
  const byUid = new Map(devices.map((device) => [device.uid, device]));
  const rule = nextRuleEnd(rules, at);
  const checks = new Map<string, LoginCheck>();
  for (const [session, { deviceUid, username: login, address, key, userId }] of logins) {
    const device = byUid.get(deviceUid);
    const stored = key && keys.get(key.toString("latin1"));
    const membership = userId === undefined ? undefined : members.get(userId);
    const refusal =
      device === undefined
        ? NO_DEVICE
        : userId !== undefined && membership === undefined
          ? ({ refused: "member", reason: "the user is no longer a member of the namespace" } as const)
          : yield* refusalOf(services, { device, stored, rules }, { login, address, key }, at);
    const access = Math.min(keyEnd(stored, at), nextEnd([membership?.accessExpiresAt], at));
    checks.set(session, { refusal, ends: { access, rule } });
  }
  return checks;
}

/**
 * Merges two policies of a namespace. The first one was read earlier for other open logins, and the second one was read
 * now. The result contains only the devices, keys and members of open logins.
 * @param logins all open logins of the namespace
 */
export function mergePolicies(
  before: LoginPolicy | undefined,
  read: LoginPolicy,
  logins: readonly LoginFacts[],
): LoginPolicy {
  if (before === undefined) return read;
  const devices = new Map([...before.devices, ...read.devices].map((device) => [device.uid, device]));
  const keys = new Map([...before.keys, ...read.keys]);
  const members = new Map([...before.members, ...read.members]);
  const merged: LoginPolicy = { ...read, devices: [], keys: new Map(), members: new Map() };
  for (const uid of new Set(logins.map(({ deviceUid }) => deviceUid))) {
    const device = devices.get(uid);
    if (device !== undefined) merged.devices.push(device);
  }
  for (const { key, userId } of logins) {
    const name = key?.toString("latin1");
    const stored = name === undefined ? undefined : keys.get(name);
    if (name !== undefined && stored !== undefined) merged.keys.set(name, stored);
    const member = userId === undefined ? undefined : members.get(userId);
    if (userId !== undefined && member !== undefined) merged.members.set(userId, member);
  }
  return merged;
}
