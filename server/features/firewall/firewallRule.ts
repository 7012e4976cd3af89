import type { firewall } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { declaredIn } from "../../changes/declaredBy.ts";
import { type Declared, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { NotFoundError } from "../../errors.ts";
import { declaredFilter, presentFilter, type StoredFilter } from "../filters/filter.ts";
import { withTags } from "../tags/tagList.ts";

/** Highest value of the id's column; no rule has a higher id, which a path may name. */
const HIGHEST_ID = 2_147_483_647;

export const noSuchRule = () => new NotFoundError("no such rule");

/**
 * The unique key of a rule.
 * @throws NotFoundError no rule can have the id
 */
export function ruleKey(tenantId: string, id: string) {
  if (Number(id) > HIGHEST_ID) throw noSuchRule();
  return { tenantId_id: { tenantId, id: Number(id) } };
}

/** The declared fields of a rule: all but its id. */
const declaredFirewallRule = (row: FirewallRule & StoredFilter): Declared => ({
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
  declare: (tx, tenantId, id, declaredBy) =>
    tx.firewallRule.updateMany({ where: ruleKey(tenantId, id).tenantId_id, data: { declaredBy } }),
};

type WireRule = z.output<typeof firewall.firewallRule>;

/** Converts a firewall rule to its wire format (models section 8). */
export function presentFirewallRule(row: FirewallRule & StoredFilter): WireRule {
  return {
    id: String(row.id),
    tenant_id: row.tenantId,
    action: row.action as WireRule["action"],
    active: row.active,
    filter: presentFilter(row),
    priority: row.priority,
    source_ip: row.sourceIp,
    username: row.username,
    revision: revisionOf(declaredFirewallRule(row)),
    declared_by: declaredIn(row.declaredBy),
  };
}
