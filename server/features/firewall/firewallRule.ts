import type { firewall } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { type Declared, declaredIn, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { updateRow } from "../../db/sql/rows.ts";
import { NotFoundError } from "../../errors.ts";
import { declaredFilter, presentFilter } from "../filters/filter.ts";
import { type FilteredRow, filteredRows } from "../filters/filteredRows.ts";

/** Highest value of the id's column; no rule has a higher id, which a path may name. */
const HIGHEST_ID = 2_147_483_647;

export const noSuchRule = () => new NotFoundError("no such rule");

/**
 * The unique key of a rule.
 * @throws NotFoundError no rule can have the id
 */
export function ruleKey(tenantId: string, id: string) {
  if (Number(id) > HIGHEST_ID) throw noSuchRule();
  return { tenantId, id: Number(id) };
}

/** A rule with the tags of its filter. */
export type FoundRule = FilteredRow<"FirewallRule">;

/** The stored rules. */
export const firewallRuleRows = filteredRows("FirewallRule", { tenantId: "tenantId", ruleId: "id" });

/** The declared fields of a rule: all but its id. */
export const declaredFirewallRule = (row: FoundRule): Declared => ({
  action: row.action,
  active: row.active,
  priority: row.priority,
  source_ip: row.sourceIp,
  username: row.username,
  filter: declaredFilter(row),
});

export const firewallRuleObject: ManagedObject<FoundRule> = {
  id: (_, { params, result }) => params.id ?? String(result?.id),
  // Async, so that an id that no rule can have rejects.
  find: async (tx, tenantId, id) => firewallRuleRows.find(tx, ruleKey(tenantId, id)),
  declared: declaredFirewallRule,
  declare: (tx, tenantId, id, declaredBy) =>
    updateRow(tx, "FirewallRule", ruleKey(tenantId, id), { declaredBy }),
};

type WireRule = z.output<typeof firewall.firewallRule>;

/** Converts a firewall rule to its wire format (models section 8). */
export function presentFirewallRule(row: FoundRule): WireRule {
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
