import type { firewall } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { revisionOf } from "../../changes/managedObject.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { presentFilter, type StoredFilter } from "../filters/filter.ts";
import { declaredFirewallRule } from "./object.ts";

type WireRule = z.output<typeof firewall.firewallRule>;

/** A firewall rule as the wire has it (models section 8). */
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
  };
}
