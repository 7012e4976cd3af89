import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { firewallDecides } from "@gatehouse-access/sdk/policy";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { normalAddress } from "../../http/addresses.ts";
import { ForbiddenError } from "../../http/errors.ts";
import type { Handler } from "../../http/routes.ts";
import { addressedDevice } from "../devices/lookup.ts";
import { presentFilter, type StoredFilter } from "../filters/filter.ts";
import { tagNames, withTags } from "../tags/tagList.ts";
import { inTransaction, within } from "../transaction.ts";

const factsOf = (row: FirewallRule & StoredFilter) => ({
  id: row.id,
  action: row.action === "allow" ? ("allow" as const) : ("deny" as const),
  active: row.active,
  priority: row.priority,
  sourceIp: row.sourceIp,
  username: row.username,
  filter: presentFilter(row),
});

/** @throws ForbiddenError a rule denies the login */
export const evaluateFirewall: Handler<InternalOperations["evaluateFirewall"]> = async (context) => {
  const { services, query } = context;
  // Of one moment: while a tag is renamed, a device with the old name must not meet rules with the new one.
  const { device, rows } = await inTransaction(services, async (tx) => {
    const device = await addressedDevice(within(services, tx), query);
    const rows = await tx.firewallRule.findMany({
      where: { tenantId: device.tenantId, active: true },
      include: withTags,
      // Ids grow: of one priority, the rule made last comes last, as the decision needs it.
      orderBy: { id: "asc" },
    });
    return { device, rows };
  });
  const { allowed, rule } = firewallDecides(rows.map(factsOf), {
    deviceName: device.name,
    deviceTags: tagNames(device.tags),
    login: query.username,
    // Else a rule that denies could be got round by another spelling.
    sourceIp: normalAddress(query.ip_address) ?? query.ip_address,
  });
  if (!allowed) throw new ForbiddenError(`denied by firewall rule ${rule?.id}`);
  return undefined;
};
