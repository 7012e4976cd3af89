import { setImmediate as letOthers } from "node:timers/promises";
import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { type FirewallDecision, firewallDecides, type LoginAttempt } from "@gatehouse-access/sdk/policy";
import { normalAddress } from "../../addresses.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction, within } from "../../db/sql/transaction.ts";
import { ForbiddenError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { addressedDevice } from "../devices/lookup.ts";
import { presentFilter, type StoredFilter } from "../filters/filter.ts";
import { tagNames, withTags } from "../tags/tagList.ts";

/** Number of rules per statement. SQLite cannot read the tags of a thousand rules in one statement. */
const READ_AT_ONCE = 250;
/** Number of rules that are matched before other requests can run. Matching one rule can take a millisecond. */
const MATCHED_AT_ONCE = 50;

const factsOf = (row: FirewallRule & StoredFilter) => ({
  id: row.id,
  action: row.action === "allow" ? ("allow" as const) : ("deny" as const),
  active: row.active,
  priority: row.priority,
  sourceIp: row.sourceIp,
  username: row.username,
  filter: presentFilter(row),
  expiresAt: row.expiresAt?.toISOString(),
});

type Facts = ReturnType<typeof factsOf>;

/** Reads the active rules of a namespace, including expired rules. */
export async function activeRules(tx: Transaction, tenantId: string): Promise<Facts[]> {
  const rules: Facts[] = [];
  for (let last = 0; ; last = rules.at(-1)?.id ?? 0) {
    const rows = await tx.firewallRule.findMany({
      where: { tenantId, active: true, id: { gt: last } },
      include: withTags,
      orderBy: { id: "asc" },
      take: READ_AT_ONCE,
    });
    rules.push(...rows.map(factsOf));
    if (rows.length < READ_AT_ONCE) return rules;
  }
}

/**
 * Returns the same decision as {@link firewallDecides}, but starts with the strongest rules and stops at the first
 * match. Other requests can run between the groups of rules.
 */
export async function decideLogin(
  rules: readonly Facts[],
  attempt: LoginAttempt,
): Promise<FirewallDecision<Facts>> {
  // A newer rule has a higher id. Among rules with the same priority, the newest rule is the strongest.
  const byStrength = rules.toSorted((a, b) => b.priority - a.priority || b.id - a.id);
  for (let start = 0; start < byStrength.length; start += MATCHED_AT_ONCE) {
    if (start > 0) await letOthers();
    const some = byStrength.slice(start, start + MATCHED_AT_ONCE).reverse();
    const decision = firewallDecides(some, attempt);
    if (decision.rule !== null) return decision;
  }
  return firewallDecides([], attempt);
}

/**
 * Checks a login against the firewall rules.
 * @throws ForbiddenError a rule denies the login
 */
export const evaluateFirewall: Handler<InternalOperations["evaluateFirewall"]> = async (context) => {
  const { services, query } = context;
  // One transaction reads the device and the rules. Otherwise, during the rename of a tag, the device could have the
  // old tag name and the rules the new one.
  const { device, rules } = await inTransaction(services, async (tx) => {
    const device = await addressedDevice(within(services, tx), query);
    return { device, rules: await activeRules(tx, device.tenantId) };
  });
  const { allowed, rule } = await decideLogin(rules, {
    deviceName: device.name,
    deviceTags: tagNames(device.tags),
    login: query.username,
    // The address is normalized: otherwise an attacker could evade a deny rule with another spelling of the address.
    sourceIp: normalAddress(query.ip_address) ?? query.ip_address,
    at: services.accessTime(),
  });
  if (!allowed) throw new ForbiddenError(`denied by firewall rule ${rule?.id}`);
  return undefined;
};
