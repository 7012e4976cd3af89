import { z } from "zod";
import { declaredBy, defineOperation } from "./operation.ts";
import { FIREWALL_PATTERNS_MAX } from "./patternSize.ts";
import {
  accessEnd,
  addition,
  filter,
  model,
  paging,
  pattern,
  requestedEnd,
  revision,
  TOTAL_COUNT,
  tag,
  tags,
  tenantId,
  wireFilter,
} from "./schemas.ts";

const part = "Firewall rules";
const NOT_ADMINISTRATOR = "caller's role is below `administrator`";
const UNKNOWN = "no such rule in the namespace";

/** Highest priority of a rule: the maximum value of a 32-bit column. The specification has no maximum. */
export const PRIORITY_MAX = 2_147_483_647;

/**
 * Id of a rule: a decimal number, because the specification also declares the id as an integer in paths (rules D28).
 */
export const ruleId = z
  .string()
  .regex(/^[1-9][0-9]{0,9}$/, "must be a whole number of at least 1, without leading zeros");

const action = z.enum(["allow", "deny"]);

export const firewallRule = model(
  "FirewallRule",
  "Allows or denies logins to devices. Of the rules that match a login, the rule with the highest " +
    "priority decides",
  z.object({
    id: ruleId.describe("The ID of the rule"),
    tenant_id: tenantId,
    action,
    active: z.boolean(),
    filter: wireFilter,
    priority: z.int(),
    source_ip: z.string(),
    username: z.string(),
    expires_at: accessEnd.describe("The time when the rule expires; omitted if the rule does not expire"),
    revision,
    declared_by: declaredBy,
  }),
);

// Do not reorder these fields. A different order would change the revisions of objects, so stored revisions would no
// longer match.
const settings = z.object({
  action,
  active: z.boolean().describe("Whether the rule is active. The firewall skips inactive rules"),
  priority: z
    .int()
    .min(0)
    .max(PRIORITY_MAX)
    .describe("Of the rules that match a login, the rule with the highest priority decides"),
  source_ip: pattern.describe("Pattern that the client's address must match"),
  username: pattern.describe("Pattern that the login name must match"),
  filter,
  expires_at: addition(
    requestedEnd.describe(
      "Time when the rule expires, with an offset. The firewall skips expired rules. Must be in the future when the rule is created",
    ),
  ),
});

const INVALID =
  "a field is missing, a regular expression is invalid, `priority` is negative, `filter` does not have " +
  "exactly one of `hostname` and `tags`, or `expires_at` is not in the future";

const TOO_COSTLY = `the total cost of the patterns of the namespace's rules would exceed ${FIREWALL_PATTERNS_MAX}`;

const common = {
  part,
  edition: "enterprise",
  auth: ["jwt", "apikey"],
  scope: "namespace",
} as const;
const write = { ...common, object: "firewallRule", minRole: "administrator" } as const;
const writeTags = { ...write, path: "/api/firewall/rules/{id}/tags", params: { id: ruleId } } as const;

export const createFirewallRule = defineOperation({
  ...write,
  id: "createFirewallRule",
  creates: true,
  summary: "Create a rule",
  method: "POST",
  path: "/api/firewall/rules",
  body: settings,
  idempotencyKey: true,
  success: { body: firewallRule },
  errors: {
    400: INVALID,
    403: `${NOT_ADMINISTRATOR}, the namespace has reached its maximum number of rules, or ${TOO_COSTLY}`,
    404: "a filter tag does not exist in the namespace",
  },
});

export const getFirewallRules = defineOperation({
  ...common,
  id: "getFirewallRules",
  summary: "List the namespace's rules, lowest priority first",
  method: "GET",
  path: "/api/firewall/rules",
  minRole: "observer",
  query: paging,
  success: { headers: [TOTAL_COUNT], body: z.array(firewallRule) },
});

export const getFirewallRule = defineOperation({
  ...common,
  id: "getFirewallRule",
  object: "firewallRule",
  summary: "Get a rule",
  method: "GET",
  path: "/api/firewall/rules/{id}",
  minRole: "observer",
  params: { id: ruleId },
  success: { body: firewallRule },
  errors: { 404: UNKNOWN },
});

export const updateFirewallRule = defineOperation({
  ...write,
  id: "updateFirewallRule",
  summary: "Replace a rule",
  method: "PUT",
  path: "/api/firewall/rules/{id}",
  params: { id: ruleId },
  body: settings,
  success: { body: firewallRule },
  errors: {
    400: INVALID,
    403: `${NOT_ADMINISTRATOR}, or ${TOO_COSTLY}`,
    404: `${UNKNOWN}, or a filter tag does not exist`,
  },
});

export const deleteFirewallRule = defineOperation({
  ...write,
  id: "deleteFirewallRule",
  summary: "Delete a rule",
  method: "DELETE",
  path: "/api/firewall/rules/{id}",
  params: { id: ruleId },
  errors: { 403: NOT_ADMINISTRATOR, 404: UNKNOWN },
});

export const addFirewallRuleTag = defineOperation({
  ...writeTags,
  id: "addFirewallRuleTag",
  summary: "Add a tag to the filter of a rule",
  method: "POST",
  body: z.object({ tag }),
  errors: {
    400: "`tag` invalid, or the rule has a `hostname` filter",
    403: "role below `administrator`, or the rule already has 3 tags",
    404: "no such rule, or the tag does not exist in the namespace",
    409: "the filter already has the tag",
  },
});

export const removeFirewallRuleTag = defineOperation({
  ...writeTags,
  id: "removeFirewallRuleTag",
  summary: "Remove a tag from the filter of a rule. The request body contains the tag",
  method: "DELETE",
  body: z.object({ tag }),
  errors: {
    400: "`tag` missing, the rule has a `hostname` filter, or the tag is the last tag in the filter",
    403: NOT_ADMINISTRATOR,
    404: "no such rule, or its filter does not have the tag",
  },
});

export const updateFirewallRuleTags = defineOperation({
  ...writeTags,
  id: "updateFirewallRuleTags",
  summary: "Replace all tags of the filter of a rule",
  method: "PUT",
  body: z.object({ tags }),
  errors: {
    400: "`tags` not 1 to 3 different, valid tags, or the rule has a `hostname` filter",
    403: NOT_ADMINISTRATOR,
    404: "no such rule, or a tag does not exist",
  },
});
