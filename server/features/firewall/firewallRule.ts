import type { firewall } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { type Declared, declaredIn, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { updateRow } from "../../db/sql/rows.ts";
import { type ShownRow, sql } from "../../db/sql/sql.ts";
import { NotFoundError } from "../../errors.ts";
import type { Table } from "../../lists/table.ts";
import { presentEnd } from "../accessEnd.ts";
import { declaredFilter, presentFilter } from "../filters/filter.ts";
import { type FilteredRow, filteredRows } from "../filters/filteredRows.ts";

/** Maximum value of the rule's 32-bit id column. Ids in request paths can be larger. */
const HIGHEST_ID = 2_147_483_647;

export const noSuchRule = () => new NotFoundError("no such rule");

/**
 * Returns the unique key of a rule from the namespace and the id in a request path.
 * @throws NotFoundError no rule can have the id, because it exceeds the maximum of the id column
 */
export function ruleKey(tenantId: string, id: string) {
  if (Number(id) > HIGHEST_ID) throw noSuchRule();
  return { tenantId, id: Number(id) };
}

/** A rule with the tags of its filter. */
export type StoredRule = FilteredRow<"FirewallRule">;

/** Reads stored firewall rules and changes the tags of their filters. */
export const firewallRuleRows = filteredRows("FirewallRule", { tenantId: "tenantId", ruleId: "id" });

/** The database table of firewall rules. Clients can neither filter nor sort the list of rules. */
export const firewallRuleTable: Table = {
  from: sql`"FirewallRule"`,
  id: sql`"FirewallRule"."id"`,
  fields: {},
};

/** Returns the declared fields of a rule: all fields except its id. */
export const declaredFirewallRule = (row: ShownRow<StoredRule>): Declared => ({
  action: row.action,
  active: row.active,
  priority: row.priority,
  source_ip: row.sourceIp,
  username: row.username,
  filter: declaredFilter(row),
  expires_at: presentEnd(row.expiresAt),
});

export const firewallRuleObject: ManagedObject<StoredRule> = {
  id: (_, { params, result }) => params.id ?? String(result?.id),
  // The function is async, so that it returns a rejected promise for an id that no rule can have.
  find: async (tx, tenantId, id) => firewallRuleRows.find(tx, ruleKey(tenantId, id)),
  declared: declaredFirewallRule,
  declare: (tx, tenantId, id, declaredBy) =>
    updateRow(tx, "FirewallRule", ruleKey(tenantId, id), { declaredBy }),
};

type WireRule = z.output<typeof firewall.firewallRule>;

/** Converts a firewall rule to its wire format (models section 8). */
export function presentFirewallRule(row: ShownRow<StoredRule>): WireRule {
  return {
    id: String(row.id),
    tenant_id: row.tenantId,
    action: row.action as WireRule["action"],
    active: row.active,
    filter: presentFilter(row),
    priority: row.priority,
    source_ip: row.sourceIp,
    username: row.username,
    expires_at: presentEnd(row.expiresAt),
    revision: revisionOf(declaredFirewallRule(row)),
    declared_by: declaredIn(row.declaredBy),
  };
}
