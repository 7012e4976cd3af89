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

/** Number of rules that one statement reads. Other requests run between two statements. */
const READ_AT_ONCE = 1000;

type RuleRow = Pick<
  FirewallRule,
  "id" | "action" | "priority" | "sourceIp" | "username" | "hostname" | "expiresAt"
> & { readonly tagList: string | null };

/** A firewall rule that is active, for the evaluation of logins. */
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
 * Reads the rules of a namespace whose column `active` is true, and returns the strongest rule first. The result
 * includes expired rules, because the evaluation checks the expiry time. The rules are read in pages, in the order of
 * ids. So a rule is read exactly once, even if its priority changes between two pages.
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
 * @throws BusyError too many evaluations are already waiting in the namespace
 */
export const evaluateFirewall: Handler<InternalOperations["evaluateFirewall"]> = async (context) => {
  const { services, query } = context;
  // The device and the rules are read in one transaction. In two transactions, a tag could be renamed in between: the
  // device would then have the old name of the tag, and the rules the new name.
  const { device, rules } = await inTransaction(services, async (tx) => {
    const device = await addressedDevice(within(services, tx), query);
    return { device, rules: await activeRules(tx, device.tenantId) };
  });
  const { tenantId } = device;
  const attempt = {
    deviceName: device.name,
    deviceTags: tagNames(device.tags),
    login: query.username,
    // The address is normalized, so that an attacker cannot evade a deny rule with a different notation of the address.
    sourceIp: normalAddress(query.ip_address) ?? query.ip_address,
    at: services.accessTime(),
  };
  const decision = firewallDecision(rules, attempt, services.patterns.of(tenantId));
  const { allowed, rule } = await services.decisions.run(tenantId, decision);
  if (!allowed) throw new ForbiddenError(`denied by firewall rule ${rule?.id}`);
  return undefined;
};
