import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { declaredColumn } from "../../changes/declaredBy.ts";
import { inTransaction, type Transaction } from "../../db/transaction.ts";
import type { Context, Handler } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import type { Services } from "../../services.ts";
import { checkFilter, newFilter, replacedFilter } from "../filters/filter.ts";
import { requireRoom } from "../requireRoom.ts";
import { withTags } from "../tags/tagList.ts";
import { noSuchRule, presentFirewallRule, ruleKey } from "./firewallRule.ts";

type Body = Context<PublicOperations["createFirewallRule"]>["body"];

const columnsOf = (body: Body) => ({
  action: body.action,
  active: body.active,
  priority: body.priority,
  sourceIp: body.source_ip,
  username: body.username,
});

/** In ascending strength (rules section 6); of rules with the same priority, the later one is stronger. */
export const getFirewallRules: Handler<PublicOperations["getFirewallRules"]> = async (context) => {
  const { services, identity, query, header } = context;
  const where = { tenantId: identity.tenant };
  const [total, rows] = await Promise.all([
    services.db.firewallRule.count({ where }),
    services.db.firewallRule.findMany({
      where,
      include: withTags,
      orderBy: [{ priority: "asc" }, { id: "asc" }],
      ...pageOf(query),
    }),
  ]);
  header("X-Total-Count", total);
  return rows.map(presentFirewallRule);
};

export const getFirewallRule: Handler<PublicOperations["getFirewallRule"]> = async (context) => {
  const { services, identity, params } = context;
  const where = ruleKey(identity.tenant, params.id);
  const row = await services.db.firewallRule.findUnique({ where, include: withTags });
  if (!row) throw noSuchRule();
  return presentFirewallRule(row);
};

/** @throws ForbiddenError the namespace has as many rules as it may have */
function checkNumber(services: Services, tx: Transaction, tenantId: string): Promise<void> {
  const limit = services.settings.maximumFirewallRules;
  return requireRoom(
    limit,
    () => tx.firewallRule.count({ where: { tenantId }, take: limit }),
    `the namespace has ${limit} firewall rules, the most that it may have: delete one`,
  );
}

export const createFirewallRule: Handler<PublicOperations["createFirewallRule"]> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const tenantId = identity.tenant;
  const row = await createOnce(context, {
    taken: "the rule exists already",
    find: (tx, made) =>
      tx.firewallRule.findUnique({
        where: { tenantId_creationKey: { tenantId, creationKey: made } },
        include: withTags,
      }),
    create: async (tx) => {
      await checkNumber(services, tx, tenantId);
      await checkFilter(tx, tenantId, body.filter);
      return tx.firewallRule.create({
        data: {
          tenantId,
          creationKey,
          declaredBy: declaredColumn(declaration, services.now()),
          ...columnsOf(body),
          ...newFilter(body.filter),
        },
        include: withTags,
      });
    },
  });
  return presentFirewallRule(row);
};

export const updateFirewallRule: Handler<PublicOperations["updateFirewallRule"]> = async (context) => {
  const { services, identity, params, body } = context;
  const where = ruleKey(identity.tenant, params.id);
  const row = await inTransaction(services, async (tx) => {
    if (!(await tx.firewallRule.findUnique({ where }))) throw noSuchRule();
    await checkFilter(tx, identity.tenant, body.filter);
    return tx.firewallRule.update({
      where,
      data: { ...columnsOf(body), ...replacedFilter(body.filter) },
      include: withTags,
    });
  });
  return presentFirewallRule(row);
};

export const deleteFirewallRule: Handler<PublicOperations["deleteFirewallRule"]> = async (context) => {
  const { services, identity, params } = context;
  const { tenantId_id: where } = ruleKey(identity.tenant, params.id);
  const { count } = await services.db.firewallRule.deleteMany({ where });
  if (count === 0) throw noSuchRule();
  return undefined;
};
