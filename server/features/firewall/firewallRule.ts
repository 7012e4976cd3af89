import type { firewall } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { declaredIn } from "../../changes/declaredBy.ts";
import { type Declared, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { readRows, type SqlClient } from "../../db/readRows.ts";
import { hasKey, updateRow } from "../../db/rows.ts";
import { sql } from "../../db/sql.ts";
import { NotFoundError } from "../../errors.ts";
import { declaredFilter, presentFilter, type StoredFilter } from "../filters/filter.ts";
import { tagsColumn, tagsIn } from "../tags/tagList.ts";

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

const TAGS = tagsColumn(
  sql`"FirewallRuleTag"`,
  sql`"FirewallRuleTag"."tenantId" = "FirewallRule"."tenantId"
    AND "FirewallRuleTag"."ruleId" = "FirewallRule"."id"`,
);

/** A rule with the tags of its filter. */
export type FoundRule = FirewallRule & StoredFilter;

/** The rule with a unique key of its table, and the tags of its filter; null without one. */
export async function findFirewallRule(db: SqlClient, key: Partial<FirewallRule>): Promise<FoundRule | null> {
  const [row] = await readRows<FirewallRule & { readonly tagList: string | null }>(
    db,
    sql`SELECT "FirewallRule".*, ${TAGS} AS "tagList" FROM "FirewallRule" WHERE ${hasKey<"FirewallRule">(key)}`,
  );
  return row ? { ...row, tags: tagsIn(row.tagList) } : null;
}

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
  find: async (tx, tenantId, id) => findFirewallRule(tx, ruleKey(tenantId, id)),
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
