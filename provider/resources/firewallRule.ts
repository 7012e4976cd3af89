import { firewall } from "@gatehouse-access/sdk/contract";
import { areDisjoint } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import { said } from "../resourceError.ts";
import type { FirewallRule } from "../service/listings.ts";
import {
  filterInput,
  filterState,
  IdForm,
  type InputValues,
  listed,
  liveFacts,
  needsOfTags,
  optional,
  output,
  patternOn,
  required,
  tenantInput,
} from "./definition.ts";
import { defineExpiring, endState, endToSend, expiryInputs, expiryOutputs } from "./expiry.ts";
import { declares } from "./values.ts";

const wire = firewall.createFirewallRule.body.shape;

const fields = {
  tenant: tenantInput,
  action: required(wire.action, {
    description: "The action for connections that match the rule. Must be `allow` or `deny`.",
  }),
  priority: required(wire.priority, {
    description:
      "The priority of the rule. If several rules match, the rule with the highest number applies. If no rule matches, access is allowed.",
  }),
  sourceIp: required(patternOn(wire.source_ip, "address"), {
    description:
      "An RE2 pattern that matches the client's IP address. The pattern is not anchored. Use the function `cidr` to create a pattern from an address range.",
  }),
  username: required(patternOn(wire.username, "login"), {
    description:
      "An RE2 pattern that matches the login name. The pattern is not anchored: use `^root$` to match only `root`.",
  }),
  filter: filterInput,
  active: optional(z.boolean(), {
    description: "Whether the rule is active. Inactive rules are skipped.",
    default: true,
  }),
  ...expiryInputs("the rule", "the firewall skips the rule"),
};

const ids = new IdForm("FirewallRule", "tenant", "ruleId");

export const firewallRule = defineExpiring({
  name: "FirewallRule",
  description: "A firewall rule that allows or denies connections by client address, login name and device.",
  id: ids,
  object: { kind: "firewallRule" },
  inputs: fields,
  outputs: {
    ruleId: output(z.string(), { description: "The ID of the rule." }),
    ...expiryOutputs,
  },
  tags: { needs: "filter" },
  actsIn: "legacy",

  needs: ({ filter }, state) => [
    ...(state ? [] : [{ capability: "firewall rules" } as const]),
    ...needsOfTags(filter.tags, ["filter", "tags"]),
  ],

  rules({ action, sourceIp, username, filter }) {
    if (action !== "deny") return [];
    const patterns = [
      { field: ["sourceIp"], pattern: sourceIp, subject: "address", what: "IP address" },
      { field: ["username"], pattern: username, subject: "login", what: "login name" },
      {
        field: ["filter", "hostname"],
        pattern: filter.hostname ?? "",
        subject: "device",
        what: "device name",
      },
    ] as const;
    return patterns
      .filter(({ pattern, subject }) => areDisjoint([pattern], subject))
      .map(({ field, pattern, what }) => ({
        code: "invalid_input",
        field,
        value: pattern,
        detail: said`${JSON.stringify(pattern)} matches no ${what}, so the rule never denies a login`,
      }));
  },

  // Rules have no name, so a create can adopt any equal rule.
  async find(connection, inputs, isOthers) {
    const { tenant, rules } = await connection.tenant(inputs.tenant);
    return (await rules.all())
      .map((rule) => existing(tenant, rule))
      .find(({ id, state }) => !isOthers?.(id) && declares(fields, state, inputs));
  },

  displayName: nameOf,

  async list(connection, tenant) {
    return (await connection.firewallRules(tenant)).map((rule) =>
      listed(`${tenant}/${rule.id}`, nameOf(rule), toState(tenant, rule), {
        declaredBy: rule.declaredBy,
      }),
    );
  },

  async create(connection, inputs, { idempotencyKey }) {
    const opened = await connection.tenant(inputs.tenant);
    const { tenant, client, rules } = opened;
    const created = await opened.tagWork.needing(inputs.filter.tags, "FirewallRule", () =>
      client.createFirewallRule(
        { body: { ...bodyOf(inputs), expiresAt: endToSend(inputs) } },
        { idempotencyKey },
      ),
    );
    rules.put(created);
    return existing(tenant, created);
  },

  async read(connection, id) {
    const { tenant, ruleId } = ids.split(id);
    const { rules } = await connection.tenant(tenant);
    const found = await rules.find(ruleId);
    return found && existing(tenant, found);
  },

  async update(connection, id, state, inputs) {
    const { tenant, ruleId } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { client, rules } = opened;
    const changed = await opened.tagWork.needing(inputs.filter.tags, "FirewallRule", () =>
      client.updateFirewallRule({
        params: { id: ruleId },
        body: { ...bodyOf(inputs), expiresAt: endToSend(inputs, state) },
      }),
    );
    rules.put(changed);
    return toState(tenant, changed);
  },

  async delete(connection, id) {
    const { tenant, ruleId } = ids.split(id);
    const { client, rules } = await connection.tenant(tenant);
    await rules.remove(ruleId, client, (witnessed) =>
      witnessed.deleteFirewallRule({ params: { id: ruleId } }),
    );
  },
});

/** Rules have no name, so reports name them by these values. */
function nameOf({ action, priority }: { readonly action?: unknown; readonly priority?: unknown }): string {
  return `${action} at priority ${priority}`;
}

function bodyOf({ action, priority, sourceIp, username, filter, active = true }: InputValues<typeof fields>) {
  return { action, priority, sourceIp, username, filter, active };
}

function existing(tenant: string, rule: FirewallRule) {
  return { id: `${tenant}/${rule.id}`, state: toState(tenant, rule), live: liveFacts(rule) };
}

function toState(tenant: string, rule: FirewallRule) {
  return {
    tenant,
    action: rule.action,
    priority: rule.priority,
    sourceIp: rule.sourceIp,
    username: rule.username,
    filter: filterState(rule.filter),
    active: rule.active,
    ruleId: rule.id,
    ...endState(rule.expiresAt),
  };
}
