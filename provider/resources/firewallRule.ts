import { isNotFound } from "@gatehouse-access/sdk";
import { FIREWALL_PATTERNS_MAX, firewall } from "@gatehouse-access/sdk/contract";
import {
  type AccessRule,
  areDisjoint,
  type NamespacePolicy,
  totalPatternCost,
} from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import type { Shown } from "../engine/index.ts";
import { defineResource } from "../model/defineResource.ts";
import { filterInput, filterState, needsOfTags, patternOn } from "../model/deviceFilter.ts";
import type { Draft } from "../model/draft.ts";
import { endState, endToSend, expiring, expiryInputs, expiryOutputs } from "../model/expiry.ts";
import { optional, output, required, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../model/idForm.ts";
import { type Kind, listedBy, policyEnd, type QuotaCheck } from "../model/kind.ts";
import type { HasObjects } from "../model/namespaceObjects.ts";
import type { LiveObject } from "../model/object.ts";
import { firstTitles, knownTexts, outputOf, type PlannedStep } from "../model/plannedStep.ts";
import { stored } from "../model/stored.ts";
import { idWithin, sameInputs } from "../model/values.ts";
import { said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import { type FirewallRule, type ListingSource, PAGE_SIZE } from "../service/listings.ts";
import type { Values } from "../values.ts";

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

/** The firewall rules of a namespace, by id. */
export const rules: ListingSource<FirewallRule> = (client, tenant) => ({
  kind: "FirewallRule",
  keysOf: (rule) => [rule.id],
  pages: () => client.pages("getFirewallRules", { query: { perPage: PAGE_SIZE } }),
  requireReadable: () => client.getNamespace({ params: { tenant } }),
  look: (id) => client.getFirewallRule({ params: { id } }),
});

/**
 * Returns the firewall rules of a namespace. Returns an empty list for a community instance, because it has no
 * firewall.
 * @throws NotFoundError for a 404 that may come from a proxy in front of the service
 */
export async function firewallRulesIn(connection: Connection, tenant: string): Promise<FirewallRule[]> {
  const opened = await connection.tenant(tenant);
  return opened.listing(rules).all().catch(connection.withoutFirewall(tenant));
}

const definition = defineResource({
  ...stored({
    name: "FirewallRule",
    id: new IdForm("FirewallRule", {
      tenant: EXAMPLE_TENANT,
      ruleId: "507f191e810c19729de860ea",
    }),
    inputs: fields,
    outputs: {
      ruleId: output(z.string(), { description: "The ID of the rule." }),
      ...expiryOutputs,
    },
    source: rules,
    all: firewallRulesIn,
    keyOf: ({ id }: FirewallRule) => id,
    nameOf: (rule) => nameOf(rule),
    derived: ({ id, filter, expiresAt }) => ({
      ruleId: id,
      filter: filterState(filter),
      ...endState(expiresAt),
    }),
    body: (plain, state) => ({ ...plain, expiresAt: endToSend(plain, state) }),
    create: (client, body, options) => client.createFirewallRule({ body }, options),
    update: (client, id, body) => client.updateFirewallRule({ params: { id }, body }),
    remove: (client, id) => client.deleteFirewallRule({ params: { id } }),
  }),
  description: "A firewall rule that allows or denies connections by client address, login name and device.",
  layers: [expiring],
  object: { kind: "firewallRule" },
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

  displayName: nameOf,
});

/**
 * Returns the display name of a rule. A rule has no name on the service, so reports show its action and its priority.
 */
function nameOf({ action, priority }: { readonly action?: unknown; readonly priority?: unknown }): string {
  return `${action} at priority ${priority}`;
}

const patternsOf = ({ username, sourceIp, filter }: Values): string[] => {
  const hostname = (filter as { readonly hostname?: Shown } | undefined)?.hostname;
  return [username, sourceIp, hostname].flatMap((pattern) => knownTexts(pattern as Shown | undefined));
};

/**
 * Returns a sentence if the total cost of the firewall rules' patterns after the plan exceeds the maximum for a
 * namespace.
 */
async function costlyPatterns({ opened, steps, policies }: QuotaCheck): Promise<string[]> {
  const costly = steps.filter(({ after }) => totalPatternCost(patternsOf(after?.inputs ?? {}), 0) > 0);
  if (costly.length === 0) return [];
  const { before, after } = await policies();
  const costOf = ({ rules }: NamespacePolicy) =>
    totalPatternCost(rules.flatMap((rule) => patternsOf({ ...rule })));
  const cost = costOf(after);
  if (cost <= FIREWALL_PATTERNS_MAX || cost <= costOf(before)) return [];
  return [
    `${firstTitles(costly.map(({ title }) => title))}: the patterns of the firewall rules of the namespace ${opened.tenant} would have a total cost of ${cost}, and the maximum is ${FIREWALL_PATTERNS_MAX}; use fewer different patterns, smaller patterns, or patterns of literals such as ^web-1$`,
  ];
}

const WHAT = "firewall rules";
const MISSED = "unmanaged firewall rules cannot be detected";

type RuleState = Omit<AccessRule, "id" | "expiresAt"> & {
  readonly ruleId: string;
  readonly expiresAt: string;
};

export const firewallRule: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: WHAT,
    missed: MISSED,
    isRequired: true,
    // Among rules with the same priority, the rule that was created last applies.
    inOrderOfCreation: true,
    async read(connection, tenant) {
      try {
        const rules = (await definition.list?.(connection, tenant)) ?? [];
        return { objects: rules.toSorted(byCreation) };
      } catch (error) {
        if (!isNotFound(error)) throw error;
        // The 404 response may come from a proxy.
        const notEvaluated =
          "firewall rules could not be read (404 without a message); access is evaluated without rules";
        const unread = { what: WHAT, missed: MISSED, reason: error.message };
        return { objects: [], unread, notEvaluated: [notEvaluated] };
      }
    },
  }),
  parts: undefined,
  watched: {},
  operations: {
    create: ["createFirewallRule"],
    update: ["updateFirewallRule"],
    delete: ["deleteFirewallRule"],
  },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "ruleId"),
    newKey: adopted,
    values: (_draft, { key }) => ({ ruleId: key }),
  },
  quota: costlyPatterns,
  decides: {
    parts: (objects) => ({ rules: Array.from(objects, ({ state }) => accessRule(state as RuleState)) }),
    decision: "rule",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "rules", nameOf: ({ action, priority }) => `${action}-${priority}` },
};

/**
 * Sorts rules in the order of their creation. Each new rule gets a higher id than all earlier rules. This includes ids
 * that are strings.
 */
const byCreation = (left: Pick<LiveObject, "id">, right: Pick<LiveObject, "id">): number =>
  left.id.localeCompare(right.id, "en", { numeric: true });

/**
 * Reads the firewall rules of a namespace, oldest first.
 * @throws RequestError if the rules cannot be read
 */
export async function readRules(connection: Connection, tenant: string): Promise<AccessRule[]> {
  const rules = (await definition.list?.(connection, tenant)) ?? [];
  return rules.toSorted(byCreation).map(({ state }) => accessRule(state as unknown as RuleState));
}

/** Returns the firewall rules of a namespace, oldest first. */
export const rulesOf = (state: HasObjects): AccessRule[] =>
  Array.from(state.of(definition)?.values() ?? [], ({ state }) => accessRule(state as RuleState));

function accessRule(state: RuleState): AccessRule {
  const { ruleId: id, action, active, priority, sourceIp, username, filter } = state;
  return { id, action, active, priority, sourceIp, username, filter, ...policyEnd(state) };
}

/**
 * Returns the key of the live rule that a new resource adopts: a rule that equals the inputs. Returns undefined if the
 * resource adopts no rule.
 */
function adopted({ live }: Draft, { after }: PlannedStep, inputs: Values): string | undefined {
  if (!after?.inputs.adopt) return undefined;
  const rules = [...(live.of(definition) ?? [])];
  return rules.find(([, { state }]) => sameInputs(definition.inputs, state, inputs))?.[0];
}
