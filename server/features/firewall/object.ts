import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { declaredFilter, type StoredFilter } from "../filters/filter.ts";
import { withTags } from "../tags/tagList.ts";
import { ruleKey } from "./rules.ts";

/** What is declared of a rule: all but its id. */
export const declaredFirewallRule = (row: FirewallRule & StoredFilter): Declared => ({
  action: row.action,
  active: row.active,
  priority: row.priority,
  source_ip: row.sourceIp,
  username: row.username,
  filter: declaredFilter(row),
});

export const firewallRuleObject: ManagedObject = {
  id: (_, { params, result }) => params.id ?? String(result?.id),
  async read(tx, tenantId, id) {
    const row = await tx.firewallRule.findUnique({ where: ruleKey(tenantId, id), include: withTags });
    return row && declaredFirewallRule(row);
  },
};
