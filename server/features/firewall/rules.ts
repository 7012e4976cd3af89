import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { declaredColumn } from "../../changes/managedObject.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { countRows, deleteRows, hasKey, insertion, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, sql } from "../../db/sql/sql.ts";
import type { Context, Handler, ObjectWrite } from "../../http/handler.ts";
import { listColumns } from "../../lists/listRows.ts";
import type { SqlServices } from "../../services.ts";
import { newEnd, updatedEnd } from "../accessEnd.ts";
import { checkFilter, filterColumn } from "../filters/filter.ts";
import { requireQuota } from "../requireQuota.ts";
import { tagRows } from "../tags/tagList.ts";
import {
  declaredFirewallRule,
  firewallRuleRows,
  firewallRuleTable,
  noSuchRule,
  presentFirewallRule,
  ruleKey,
  type StoredRule,
} from "./firewallRule.ts";
import { checkPatternCosts } from "./patternCosts.ts";

type Body = Context<PublicOperations["createFirewallRule"]>["body"];

const columnsOf = (body: Body) => ({
  action: body.action,
  active: body.active,
  priority: body.priority,
  sourceIp: body.source_ip,
  username: body.username,
  ...filterColumn(body.filter),
});

/**
 * Lists the rules from the weakest to the strongest (rules section 6). Among rules with the same priority, the newer
 * rule is stronger.
 */
export const getFirewallRules: Handler<PublicOperations["getFirewallRules"]> = async (context) => {
  const { services, identity, query, header } = context;
  const { columns, withTags } = firewallRuleRows;
  const { rows, total } = await listColumns<FirewallRule>(services, firewallRuleTable, columns, {
    where: sql`"FirewallRule"."tenantId" = ${identity.tenant}`,
    filter: undefined,
    trailing: "and",
    sort: { by: [sql`"FirewallRule"."priority"`, firewallRuleTable.id], direction: "asc" },
    page: query.page,
    perPage: query.per_page,
  });
  header("X-Total-Count", total);
  return rows.map((row) => presentFirewallRule(withTags(row)));
};

export const getFirewallRule: Handler<PublicOperations["getFirewallRule"]> = async (context) => {
  const { services, identity, params } = context;
  const row = await firewallRuleRows.find(services.db, ruleKey(identity.tenant, params.id));
  if (row === null) throw noSuchRule();
  return presentFirewallRule(row);
};

/**
 * Checks the number of rules in a namespace.
 * @throws ForbiddenError the namespace has the maximum number of rules
 */
function checkNumber({ db, settings }: SqlServices, tenantId: string): Promise<void> {
  const limit = settings.maximumFirewallRules;
  return requireQuota(
    limit,
    () => countRows(db, "FirewallRule", hasKey({ tenantId }), limit),
    `the namespace has the maximum of ${limit} firewall rules: delete one`,
  );
}

export const createFirewallRule: ObjectWrite<PublicOperations["createFirewallRule"]> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const tenantId = identity.tenant;
  const row = await createOnce(context, {
    taken: "the rule already exists",
    find: (tx, key) => firewallRuleRows.find(tx, { tenantId, creationKey: key }),
    create: async (tx) => {
      await checkNumber(services, tenantId);
      await checkFilter(tx, tenantId, body.filter);
      const columns = columnsOf(body);
      await checkPatternCosts(tx, tenantId, columns);
      const created = {
        tenantId,
        ...columns,
        expiresAt: newEnd(services, "expires_at", body.expires_at),
        creationKey,
        declaredBy: declaredColumn(declaration, services.now()),
      };
      const [inserted] = await readRows<Pick<FirewallRule, "id">>(
        tx,
        sql`${insertion("FirewallRule", [created])} RETURNING "id"`,
      );
      if (inserted === undefined) return null;
      const row = { ...created, ...inserted };
      const { tags = [] } = body.filter;
      await firewallRuleRows.insertTags(tx, row, tags);
      return { ...row, tags: tagRows(tags) };
    },
  });
  context.became(declaredFirewallRule(row));
  return presentFirewallRule(row);
};

export const updateFirewallRule: ObjectWrite<PublicOperations["updateFirewallRule"], StoredRule> = async ({
  services: { db },
  body,
  found,
  became,
}) => {
  if (found === null) throw noSuchRule();
  const { tenantId, id } = found;
  await checkFilter(db, tenantId, body.filter);
  const expiresAt = updatedEnd("expires_at", body.expires_at, found.expiresAt);
  const columns = columnsOf(body);
  await checkPatternCosts(db, tenantId, columns, found);
  const changes = { ...columns, expiresAt };
  await leaveToCommit(db, updateRow(db, "FirewallRule", { tenantId, id }, changes));
  const { tags = [] } = body.filter;
  await firewallRuleRows.replaceTags(db, found, tags);
  const row = { ...found, ...changes, tags: tagRows(tags) };
  became(declaredFirewallRule(row));
  return presentFirewallRule(row);
};

export const deleteFirewallRule: ObjectWrite<PublicOperations["deleteFirewallRule"], StoredRule> = async ({
  services: { db },
  found,
  became,
}) => {
  if (found === null) throw noSuchRule();
  const { tenantId, id } = found;
  await leaveToCommit(db, deleteRows(db, "FirewallRule", { tenantId, id }));
  became(null);
  return undefined;
};
