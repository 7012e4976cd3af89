import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { InvalidError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { addFilterTag, type FilterOwner, removeFilterTag, replaceFilterTags } from "../filters/filterTags.ts";
import { firewallRuleRows, ruleKey } from "./firewallRule.ts";

function ownerOf(tenantId: string, id: string): FilterOwner<"FirewallRule"> {
  return {
    noun: "rule",
    RefusedReplacement: InvalidError,
    rows: firewallRuleRows,
    key: ruleKey(tenantId, id),
  };
}

export const addFirewallRuleTag: Handler<PublicOperations["addFirewallRuleTag"]> = async (context) => {
  const { services, identity, params, body } = context;
  await addFilterTag(services, ownerOf(identity.tenant, params.id), body.tag);
  return undefined;
};

export const removeFirewallRuleTag: Handler<PublicOperations["removeFirewallRuleTag"]> = async (context) => {
  const { services, identity, params, body } = context;
  await removeFilterTag(services, ownerOf(identity.tenant, params.id), body.tag);
  return undefined;
};

export const updateFirewallRuleTags: Handler<PublicOperations["updateFirewallRuleTags"]> = async (
  context,
) => {
  const { services, identity, params, body } = context;
  await replaceFilterTags(services, ownerOf(identity.tenant, params.id), body.tags);
  return undefined;
};
