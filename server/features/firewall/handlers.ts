import type { firewall, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import {
  createFirewallRule,
  deleteFirewallRule,
  getFirewallRule,
  getFirewallRules,
  updateFirewallRule,
} from "./rules.ts";
import { addFirewallRuleTag, removeFirewallRuleTag, updateFirewallRuleTags } from "./tags.ts";

export const firewallHandlers: Handlers<
  Pick<PublicOperations, keyof typeof firewall & keyof PublicOperations>
> = {
  createFirewallRule,
  getFirewallRules,
  getFirewallRule,
  updateFirewallRule,
  deleteFirewallRule,
  addFirewallRuleTag,
  removeFirewallRuleTag,
  updateFirewallRuleTags,
};
