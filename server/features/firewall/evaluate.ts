import { setImmediate as letOthers } from "node:timers/promises";
import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { type FirewallRuleFacts, firewallDecision, strongestFirst } from "@gatehouse-access/sdk/policy";
import { normalAddress } from "../../addresses.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { readRows, sql } from "../../db/sql/sql.ts";
import { inTransaction, type Transaction, within } from "../../db/sql/transaction.ts";
import { ForbiddenError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { addressedDevice } from "../devices/lookup.ts";
import { presentFilter } from "../filters/filter.ts";
import { tagNames, tagNamesIn, tagRows, tagsColumn } from "../tags/tagList.ts";
import { firewallRuleRows } from "./rules.ts";

/** Number of rules per statement. Other requests run between two statements. */
const READ_AT_ONCE = 1000;

type RuleRow = Pick<
  FirewallRule,
  "id" | "action" | "priority" | "sourceIp" | "username" | "hostname" | "expiresAt"
> & { readonly tagList: string | null };

/** A firewall rule that authorizes logins. */
export interface ActiveRule extends FirewallRuleFacts {
  readonly id: number;
}

const TAGS = tagsColumn(sql.column("FirewallRuleTag"), firewallRuleRows.owner);

const factsOf = (row: RuleRow): ActiveRule => ({
  id: row.id,
  action: row.action === "allow" ? "allow" : "deny",
  active: true,
  priority: row.priority,
  sourceIp: row.sourceIp,
  username: row.username,
  filter: presentFilter({ hostname: row.hostname, tags: tagRows(tagNamesIn(row.tagList)) }),
  expiresAt: row.expiresAt?.toISOString(),
});

/**
 * Reads the active rules of a namespace, strongest first, including expired rules. The pages are in the order of ids: a
 * rule whose priority changes between two pages is then read exactly once.
 */
export async function activeRules(tx: Transaction, tenantId: string): Promise<ActiveRule[]> {
  const rules: ActiveRule[] = [];
  for (let last = 0; ; last = rules.at(-1)?.id ?? 0) {
    const rows = await readRows<RuleRow>(
      tx,
      sql`SELECT "id", "action", "priority", "sourceIp", "username", "hostname", "expiresAt",
          CASE WHEN "hostname" IS NULL THEN ${TAGS} END AS "tagList"
        FROM "FirewallRule" WHERE "tenantId" = ${tenantId} AND "active" = ${true} AND "id" > ${last}
        ORDER BY "id" LIMIT ${READ_AT_ONCE}`,
    );
    for (const row of rows) rules.push(factsOf(row));
    if (rows.length < READ_AT_ONCE) return strongestFirst(rules);
    await letOthers();
  }
}

/**
 * Checks a login against the firewall rules.
 * @throws ForbiddenError a rule denies the login
 * @throws BusyError too many decisions of the namespace wait
 */
export const evaluateFirewall: Handler<InternalOperations["evaluateFirewall"]> = async (context) => {
  const { services, query } = context;
  // One transaction reads the device and the rules. Otherwise, during the rename of a tag, the device could have the
  // old tag name and the rules the new one.
  const { device, rules } = await inTransaction(services, async (tx) => {
    const device = await addressedDevice(within(services, tx), query);
    return { device, rules: await activeRules(tx, device.tenantId) };
  });
  const { tenantId } = device;
  const attempt = {
    deviceName: device.name,
    deviceTags: tagNames(device.tags),
    login: query.username,
    // The address is normalized: otherwise an attacker could evade a deny rule with another spelling of the address.
    sourceIp: normalAddress(query.ip_address) ?? query.ip_address,
    at: services.accessTime(),
  };
  const decision = firewallDecision(rules, attempt, services.patterns.of(tenantId));
  const { allowed, rule } = await services.decisions.run(tenantId, decision);
  if (!allowed) throw new ForbiddenError(`denied by firewall rule ${rule?.id}`);
  return undefined;
};
