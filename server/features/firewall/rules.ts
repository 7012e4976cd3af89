import { firewall, type PublicOperations, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import { declaredColumn, findObject, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { createOnce, deletion } from "../../changes/writeObject.ts";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { countRows, hasKey, insertion, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, sql } from "../../db/sql/sql.ts";
import { InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { listColumns } from "../../lists/listRows.ts";
import type { Table } from "../../lists/table.ts";
import type { SqlServices } from "../../services.ts";
import { columnsFrom, declaredSchema, newEnd, presenter, updatedEnd } from "../fields.ts";
import {
  addFilterTag,
  checkFilter,
  declaredFilter,
  type FilteredRow,
  type FilterOwner,
  filterColumn,
  filteredRows,
  presentFilter,
  removeFilterTag,
  replaceFilterTags,
} from "../filters/filter.ts";
import { requireQuota } from "../requireQuota.ts";
import { tagRows } from "../tags/tagList.ts";
import { checkPatternCosts } from "./patternCosts.ts";

/** Maximum value of the 32-bit id column of rules. Ids in request paths can be larger. */
const HIGHEST_ID = 2_147_483_647;

const MISSING = "no such rule";

const { firewallRule } = firewall;
const settings = firewall.updateFirewallRule.body;
const declared = declaredSchema(firewallRule, settings);

/**
 * Returns the unique key of a rule from the namespace and the id in a request path.
 * @throws NotFoundError the id exceeds the maximum of the id column, so no rule can have it
 */
export function ruleKey(tenantId: string, id: string) {
  if (Number(id) > HIGHEST_ID) throw new NotFoundError(MISSING);
  return { tenantId, id: Number(id) };
}

/** A rule, with the tags of its filter. */
type StoredRule = FilteredRow<"FirewallRule">;

/** Reads stored firewall rules and changes the tags of their filters. */
export const firewallRuleRows = filteredRows("FirewallRule", { tenantId: "tenantId", ruleId: "id" });

/** The table for lists of firewall rules. Clients cannot filter or sort these lists. */
const firewallRuleTable: Table = {
  from: sql`"FirewallRule"`,
  id: sql`"FirewallRule"."id"`,
  fields: {},
};

/** Returns the columns for the settings of a rule, except the filter and the expiry time. */
const firewallRuleColumns = columnsFrom<FirewallRule, typeof settings>(settings, {
  filter: true,
  expires_at: true,
});

const declaredFirewallRule = presenter<StoredRule, typeof declared>(declared, { filter: declaredFilter });

export const firewallRuleObject: ManagedObject<StoredRule> = {
  missing: MISSING,
  id: (_, { params, result }) => params.id ?? String(result?.id),
  // Some ids are too large for any rule. The function is async, so that such an id results in a rejected promise.
  find: async (tx, tenantId, id) => firewallRuleRows.find(tx, ruleKey(tenantId, id)),
  declared: declaredFirewallRule,
  declare: (tx, tenantId, id, declaredBy) =>
    updateRow(tx, "FirewallRule", ruleKey(tenantId, id), { declaredBy }),
};

/** Converts a firewall rule to its wire format (models section 8). */
const presentFirewallRule = presenter<StoredRule, typeof firewallRule>(firewallRule, {
  id: (row) => String(row.id),
  filter: presentFilter,
  revision: (row) => revisionOf(declaredFirewallRule(row)),
});

/**
 * Lists the rules, the weakest rule first (rules section 6). The weakest rule has the lowest priority. If two rules
 * have the same priority, the newer rule is stronger.
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
  header(TOTAL_COUNT, total);
  return rows.map((row) => presentFirewallRule(withTags(row)));
};

export const getFirewallRule: Handler<PublicOperations["getFirewallRule"]> = async (context) => {
  const { services, identity, params } = context;
  return presentFirewallRule(await findObject(firewallRuleObject, services.db, identity.tenant, params.id));
};

/**
 * Checks that the namespace can have one more rule.
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

export const createFirewallRule: ObjectWrite<PublicOperations["createFirewallRule"], StoredRule> = async (
  context,
) => {
  const { services, identity, body, creationKey, declaration } = context;
  const tenantId = identity.tenant;
  const row = await createOnce(context, {
    taken: "the rule already exists",
    find: (tx, key) => firewallRuleRows.find(tx, { tenantId, creationKey: key }),
    create: async (tx) => {
      await checkNumber(services, tenantId);
      await checkFilter(tx, tenantId, body.filter);
      const columns = { ...firewallRuleColumns(body), ...filterColumn(body.filter) };
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
  context.became(row);
  return presentFirewallRule(row);
};

export const updateFirewallRule: ObjectWrite<PublicOperations["updateFirewallRule"], StoredRule> = async ({
  services: { db },
  body,
  found,
  became,
}) => {
  const stored = found();
  const { tenantId, id } = stored;
  await checkFilter(db, tenantId, body.filter);
  const expiresAt = updatedEnd("expires_at", body.expires_at, stored.expiresAt);
  const columns = { ...firewallRuleColumns(body), ...filterColumn(body.filter) };
  await checkPatternCosts(db, tenantId, columns, stored);
  const changes = { ...columns, expiresAt };
  await leaveToCommit(db, updateRow(db, "FirewallRule", { tenantId, id }, changes));
  const { tags = [] } = body.filter;
  await firewallRuleRows.replaceTags(db, stored, tags);
  const row = { ...stored, ...changes, tags: tagRows(tags) };
  became(row);
  return presentFirewallRule(row);
};

export const deleteFirewallRule = deletion("FirewallRule", ["tenantId", "id"]);

const rules: FilterOwner<"FirewallRule"> = {
  noun: "rule",
  RefusedReplacement: InvalidError,
  rows: firewallRuleRows,
};

export const addFirewallRuleTag: ObjectWrite<PublicOperations["addFirewallRuleTag"], StoredRule> = (
  context,
) => addFilterTag(context, rules, context.body.tag);

export const removeFirewallRuleTag: ObjectWrite<PublicOperations["removeFirewallRuleTag"], StoredRule> = (
  context,
) => removeFilterTag(context, rules, context.body.tag);

export const updateFirewallRuleTags: ObjectWrite<PublicOperations["updateFirewallRuleTags"], StoredRule> = (
  context,
) => replaceFilterTags(context, rules, context.body.tags);
