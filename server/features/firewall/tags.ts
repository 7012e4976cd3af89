import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { InvalidError } from "../../errors.ts";
import type { ObjectWrite } from "../../http/handler.ts";
import { addFilterTag, type FilterOwner, removeFilterTag, replaceFilterTags } from "../filters/filterTags.ts";
import { declaredFirewallRule, firewallRuleRows, type StoredRule } from "./firewallRule.ts";

const rules: FilterOwner<"FirewallRule"> = {
  noun: "rule",
  RefusedReplacement: InvalidError,
  rows: firewallRuleRows,
  declared: declaredFirewallRule,
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
